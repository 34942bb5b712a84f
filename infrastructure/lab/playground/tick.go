package playground

import (
	"context"
	"maps"
	"time"
)

// tick runs the periodic work until ctx ends: it undoes faults, measures their effects,
// restarts relays and runs the judge.
func (e *Engine) tick(ctx context.Context) {
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		e.follow(time.Now())
		e.expire(ctx, time.Now())
		if n%5 != 0 {
			continue
		}
		e.restartRelays()
		e.heal(ctx, time.Now())
		e.refresh(ctx)
		before := e.judge.state()
		if err := e.judge.evaluate(ctx, time.Now()); err != nil && ctx.Err() == nil {
			e.note(true, "judge cannot read the store: %v", err)
		}
		if after := e.judge.state(); before.Kept() && !after.Kept() {
			e.note(true, "a promise is broken: %s", after.Breaches[0])
		}
	}
}

// expire undoes the faults that have expired.
func (e *Engine) expire(ctx context.Context, now time.Time) {
	for _, name := range e.activeFaults(func(a *active) bool { return !now.Before(a.until) }) {
		_ = e.End(ctx, name) // which logs errors
	}
}

// follow updates the effects of faults.
func (e *Engine) follow(now time.Time) {
	_, since := e.judge.inFlight()
	late := !since.IsZero() && now.Sub(since) > Late
	e.mu.Lock()
	defer e.mu.Unlock()
	if late || len(e.active) > 0 {
		e.lastDisturbed = now
	}
	for _, f := range e.effects {
		if f.Final {
			continue
		}
		over := !f.Ended.IsZero()
		if late && (!over || now.Sub(f.Ended) < watched) {
			f.Settled = now.Sub(f.Began)
		}
		until := now
		if over {
			until = f.Ended
		}
		f.During = e.meter.latency(f.Began, until)
		if over {
			f.After = e.meter.latency(f.Ended.Add(time.Second), f.Ended.Add(min(now.Sub(f.Ended), around)))
			f.Final = now.Sub(f.Ended) > watched+around
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// restartRelays replaces relays that have ended unexpectedly.
func (e *Engine) restartRelays() {
	e.mu.Lock()
	var gone []*relay
	for _, r := range e.relays {
		if r.condition != Killed && r.ended() {
			gone = append(gone, r)
		}
	}
	e.mu.Unlock()
	for _, r := range gone {
		e.note(true, "%s ended unexpectedly (%s) and is replaced: %s", r.name, r.cmd.ProcessState, r.out.String())
		if err := e.addRelay(r); err != nil {
			e.note(true, "%v", err)
		}
	}
}

// refresh reads the ranges of relays and the number of parked events.
func (e *Engine) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	parked, err := e.judge.store.parked(ctx)
	var owned map[string]int
	if e.o.Owned != nil {
		owned, _ = e.o.Owned(ctx) // on an error, for example throttling, the last value stays
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.parked = len(parked)
	}
	if owned != nil {
		e.owned = owned
	}
}

// heal requests that the parked events of contacts are sent after their poison fault ended.
func (e *Engine) heal(ctx context.Context, now time.Time) {
	e.mu.Lock()
	healing := maps.Clone(e.healing)
	e.mu.Unlock()
	for contact, until := range healing {
		found, err := e.o.RetryParked(ctx, contact)
		switch {
		case found:
			e.note(false, "retrying the parked events of contact %s, in order", contact)
		case now.Before(until):
			continue
		case err != nil:
			e.note(true, "cannot retry the parked events of contact %s: %v", contact, err)
		}
		e.mu.Lock()
		delete(e.healing, contact)
		e.mu.Unlock()
	}
}
