package playground

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Step is one fault of a plan.
type Step struct {
	Fault *Fault
	Lasts time.Duration
}

// ParsePlan parses a list such as "kill,freeze=8s,clock": faults in order, with optional
// durations. "" is all faults with their default durations.
func ParsePlan(text string) ([]Step, error) {
	var plan []Step
	if text == "" {
		for i := range Faults {
			plan = append(plan, Step{&Faults[i], Faults[i].Lasts})
		}
		return plan, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, lasts, given := strings.Cut(strings.TrimSpace(part), "=")
		f, known := FaultNamed(name)
		if !known {
			return nil, fmt.Errorf("unknown fault %q: give %s", name, strings.Join(names(), ", "))
		}
		step := Step{f, f.Lasts}
		if given {
			var err error
			if step.Lasts, err = time.ParseDuration(lasts); err != nil || step.Lasts <= 0 || step.Lasts > f.Bound {
				return nil, fmt.Errorf("%s=%s: give a duration up to %s, for example %s=%s", name, lasts, f.Bound, name, f.Lasts)
			}
		}
		plan = append(plan, step)
	}
	return plan, nil
}

func names() []string {
	out := make([]string, len(Faults))
	for i := range Faults {
		out[i] = Faults[i].Name
	}
	return out
}

// Takes returns the minimum duration of a plan with a pause before each step and at the end.
func Takes(plan []Step, pause time.Duration) time.Duration {
	total := pause
	for _, step := range plan {
		total += pause + step.Lasts
	}
	return total
}

// Play injects the faults of a plan in sequence, with a calm pause before each and at the end.
// Then it ends the load and waits for the final verdict.
func (e *Engine) Play(ctx context.Context, plan []Step, pause time.Duration) error {
	for _, step := range plan {
		e.calm(ctx, pause)
		if err := e.Begin(ctx, step.Fault.Name, step.Lasts); err != nil {
			return err
		}
		if step.Lasts > 0 {
			wait(ctx, step.Lasts)
			// ErrFault: it has ended automatically at the same moment.
			if err := e.End(ctx, step.Fault.Name); err != nil && !errors.Is(err, ErrFault) {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	e.calm(ctx, pause)
	return e.Finish(ctx)
}

// calm waits until no event was late, and no fault in effect, for a pause. The wait is
// bounded, because events may stay late for other reasons than a fault.
func (e *Engine) calm(ctx context.Context, pause time.Duration) {
	for deadline := time.Now().Add(pause + watched); ctx.Err() == nil && time.Now().Before(deadline); {
		e.mu.Lock()
		lastDisturbed := e.lastDisturbed
		e.mu.Unlock()
		if time.Since(lastDisturbed) >= pause {
			return
		}
		wait(ctx, 100*time.Millisecond)
	}
}
