package playground

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// active is a fault in effect.
type active struct {
	fault *Fault
	since time.Time
	until time.Time
	what  string
	undo  func(ctx context.Context) error
	of    *Effect
}

// Effect is the effect of a fault on the latency.
type Effect struct {
	Number int // of the fault, from 1
	Fault  *Fault
	What   string
	Began  time.Time
	Ended  time.Time // zero while it lasts
	// Before covers the 10 s before the fault, without the time when events were late or
	// another fault was in effect. During covers the events raised during the fault, After
	// the 10 s after it, or the time until the next fault.
	Before, During, After Latency
	// Settled is the time from the start of the fault until no acknowledged event was in
	// flight for more than Late; 0 if none was.
	Settled time.Duration
	// Final reports that the effect no longer changes.
	Final bool
}

const (
	// Late is the time in flight after which an event is late.
	Late = time.Second
	// around is the time before and after a fault in which latency is measured.
	around = 10 * time.Second
	// watched is the time after a fault in which late events are attributed to it.
	watched = 15 * time.Second
	// undoTimeout bounds undoing a fault.
	undoTimeout = 30 * time.Second
)

// ErrFault means that Begin or End is not possible: the fault is unknown, already in effect,
// or not in effect.
var ErrFault = errors.New("not possible now")

// Begin injects a fault. It is undone after lasts, or by End; 0 is the default of the fault.
func (e *Engine) Begin(ctx context.Context, name string, lasts time.Duration) error {
	f, known := FaultNamed(name)
	if !known {
		return fmt.Errorf("%w: unknown fault %q", ErrFault, name)
	}
	if lasts == 0 {
		lasts = f.Lasts
	}
	if lasts > f.Bound {
		return fmt.Errorf("%w: %s may last at most %s, not %s", ErrFault, f.Name, f.Bound, lasts)
	}
	e.acting.Lock()
	defer e.acting.Unlock()
	e.mu.Lock()
	_, on := e.active[name]
	e.mu.Unlock()
	if on {
		return fmt.Errorf("%w: %s is already in effect", ErrFault, name)
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
		before.Final = before.Final || !before.Ended.IsZero() // because later delays may be caused by the new fault
	}
	calm := latest(began.Add(-around), e.lastDisturbed.Add(time.Second))
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
		return fmt.Errorf("%w: %s is not in effect", ErrFault, name)
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

// activeFaults returns the names of the faults in effect that which selects.
func (e *Engine) activeFaults(which func(*active) bool) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for name, a := range e.active {
		if which(a) {
			names = append(names, name)
		}
	}
	return names
}

// endAll undoes all faults.
func (e *Engine) endAll(ctx context.Context) error {
	var errs []error
	for _, name := range e.activeFaults(func(*active) bool { return true }) {
		if err := e.End(ctx, name); !errors.Is(err, ErrFault) { // ErrFault: it has ended meanwhile
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
