package playground

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// active is a fault that is on.
type active struct {
	fault *Fault
	since time.Time
	until time.Time
	what  string
	undo  func(ctx context.Context) error
	of    *Effect
}

// Effect is what a fault did to the latency.
type Effect struct {
	Number int // of the faults done, from 1
	Fault  *Fault
	What   string
	Began  time.Time
	Ended  time.Time // zero while it lasts
	// Before is of the 10 s before it, or of what there is of them since events were late or a
	// fault was on, During of the events raised while it lasted, After of the 10 s after it, or
	// until the next fault.
	Before, During, After Latency
	// Settled is for how long, from its beginning, acknowledged events were on their way for
	// more than Late; 0 if none was.
	Settled time.Duration
	// Final says that nothing changes any more.
	Final bool
}

const (
	// Late is how long an event may be on its way before it counts as late.
	Late = time.Second
	// around is for how long latency is measured before and after a fault.
	around = 10 * time.Second
	// watched is for how long after a fault late events count as its doing.
	watched = 15 * time.Second
	// undoTimeout bounds the undoing of a fault.
	undoTimeout = 30 * time.Second
)

// ErrFault is in the error of Begin and End about a fault that there is not, or that is
// on already, or is not.
var ErrFault = errors.New("not possible now")

// Begin does a fault. It is undone after lasts, 0 for the fault's own time, or by End.
func (e *Engine) Begin(ctx context.Context, name string, lasts time.Duration) error {
	f, known := FaultNamed(name)
	if !known {
		return fmt.Errorf("%w: there is no fault %q", ErrFault, name)
	}
	if lasts == 0 {
		lasts = f.Lasts
	}
	if lasts > f.Bound {
		return fmt.Errorf("%w: %s lasts %s at most, %s are asked for", ErrFault, f.Name, f.Bound, lasts)
	}
	e.acting.Lock()
	defer e.acting.Unlock()
	e.mu.Lock()
	_, on := e.active[name]
	e.mu.Unlock()
	if on {
		return fmt.Errorf("%w: %s is on already", ErrFault, name)
	}
	began := time.Now()
	what, undo, err := f.begin(ctx, e)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	effect := &Effect{Fault: f, What: what, Began: began}
	e.judge.disturbed(began.Add(lasts))
	e.follow(began)
	e.mu.Lock()
	for _, before := range e.effects {
		before.Final = before.Final || !before.Ended.IsZero() // what comes now may be the new one's doing
	}
	calm := latest(began.Add(-around), e.restless.Add(time.Second))
	effect.Before = e.meter.latency(calm, latest(calm, began.Add(-time.Second)))
	const shownEffects = 100
	e.done++
	effect.Number = e.done
	if e.effects = append(e.effects, effect); len(e.effects) > shownEffects {
		e.effects = e.effects[len(e.effects)-shownEffects:]
	}
	if undo != nil {
		e.active[name] = &active{f, began, began.Add(lasts), what, undo, effect}
	} else {
		effect.Ended = began
	}
	e.mu.Unlock()
	e.note(false, "%s: %s", f.Title, what)
	return nil
}

// End undoes a fault.
func (e *Engine) End(ctx context.Context, name string) error {
	e.acting.Lock()
	defer e.acting.Unlock()
	e.mu.Lock()
	a := e.active[name]
	e.mu.Unlock()
	if a == nil {
		return fmt.Errorf("%w: %s is not on", ErrFault, name)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	err := a.undo(ctx)
	now := time.Now()
	e.judge.disturbed(now)
	e.mu.Lock()
	delete(e.active, name)
	a.of.Ended = now
	e.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("undo %s: %w", name, err)
		e.note(true, "%v", err)
		return err
	}
	e.note(false, "%s is over after %s: %s", a.fault.Title, now.Sub(a.since).Round(100*time.Millisecond), a.fault.Undo)
	return nil
}

// endAll undoes all faults.
func (e *Engine) endAll(ctx context.Context) error {
	e.mu.Lock()
	var names []string
	for name := range e.active {
		names = append(names, name)
	}
	e.mu.Unlock()
	var errs []error
	for _, name := range names {
		if err := e.End(ctx, name); !errors.Is(err, ErrFault) { // somebody else ended it
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
