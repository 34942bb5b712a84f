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

// ParsePlan reads a list such as "kill,freeze=8s,clock": faults in their order, with how
// long each lasts. "" is all faults with their own times.
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
			return nil, fmt.Errorf("%q is no fault: there are %s", name, strings.Join(names(), ", "))
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

// Takes is how long a plan takes at least with a pause before each step and at the end.
func Takes(plan []Step, pause time.Duration) time.Duration {
	total := pause
	for _, step := range plan {
		total += pause + step.Lasts
	}
	return total
}

// Play does a plan, one step after the other, with a calm pause before each and at the end;
// then the load ends, and it waits until everything is judged.
func (e *Engine) Play(ctx context.Context, plan []Step, pause time.Duration) error {
	for _, step := range plan {
		e.calm(ctx, pause)
		if err := e.Begin(ctx, step.Fault.Name, step.Lasts); err != nil {
			return err
		}
		if step.Lasts > 0 {
			wait(ctx, step.Lasts)
			// It may have ended by itself at the same moment.
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

// calm waits until events have not been late, and no fault was on, for a pause. What lasts
// longer than a fault may is not waited for.
func (e *Engine) calm(ctx context.Context, pause time.Duration) {
	for deadline := time.Now().Add(pause + watched); ctx.Err() == nil && time.Now().Before(deadline); {
		e.mu.Lock()
		restless := e.restless
		e.mu.Unlock()
		if time.Since(restless) >= pause {
			return
		}
		wait(ctx, 100*time.Millisecond)
	}
}
