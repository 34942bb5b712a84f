package relay

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// publish sends what the page has to send. What an outage has stopped it tries again,
// with growing pauses, until its patience or ctx ends.
func (r *Relay) publish(ctx context.Context, p *page) {
	r.round(ctx, p)
	keys, waiting := firstOutage(p)
	if waiting == nil || r.opts.Patience < 0 {
		return
	}
	patience, cancel := context.WithTimeout(ctx, r.opts.Patience)
	defer cancel()
	r.outage.enter()
	defer r.outage.leave()
	for round := 1; waiting != nil && patience.Err() == nil; round++ {
		over, rounds, pages := r.outage.failed()
		pause := r.pause(max(round, rounds), waiting) * time.Duration(pages)
		if hook := r.opts.Hooks.Retrying; hook != nil {
			hook(ctx, Retry{Round: round, Keys: keys, Pause: pause, Err: waiting})
		}
		if !sleepUntil(patience, pause, over) {
			return
		}
		r.round(ctx, p)
		keys, waiting = firstOutage(p)
	}
}

// firstOutage returns how many keys have failed in a way that waiting may cure, and how
// the first of them did.
func firstOutage(p *page) (keys int, first error) {
	for i := range p.keys {
		if k := &p.keys[i]; k.pending() && k.err != nil && ClassOf(k.err) != Refused {
			if keys++; first == nil {
				first = k.err
			}
		}
	}
	return keys, first
}

// round publishes once what is left: first the keys that nothing speaks against, then
// each suspect on its own, so that it cannot stop the others. During an outage one key
// goes ahead of them all.
func (r *Relay) round(ctx context.Context, p *page) {
	if r.outage.lasts() && !r.probe(ctx, p) {
		return
	}
	suspected := r.suspects.any()
	left := func(k *keyState) bool {
		return k.err == nil || ClassOf(k.err) != Refused
	}
	groups := p.gather(func(k *keyState) bool { return left(k) && (!suspected || !r.suspects.has(k.name)) })
	if len(groups) > 0 {
		r.send(ctx, p, groups)
	}
	if !suspected {
		return
	}
	for i := range p.keys {
		k := &p.keys[i]
		if k.pending() && left(k) && r.suspects.has(k.name) {
			r.send(ctx, p, p.gather(func(other *keyState) bool { return other == k }))
		}
	}
}

// probe sends one key, another one each time, and reports whether the others are worth
// a try. All pages and lanes of a relay meet the same outage: if each sent all it has,
// the broker would be asked more often the less it can do.
func (r *Relay) probe(ctx context.Context, p *page) bool {
	k := r.ahead(p)
	if k == nil {
		return true
	}
	r.send(ctx, p, p.gather(func(other *keyState) bool { return other == k }))
	if k.err == nil || ClassOf(k.err) == Refused {
		return true
	}
	for i := range p.keys {
		if other := &p.keys[i]; other.pending() && other.err == nil {
			other.err, other.untried = k.err, true
		}
	}
	return false
}

// ahead returns the key whose turn it is to go ahead, a suspect only if there are no
// others; nil if nothing is left to send.
func (r *Relay) ahead(p *page) *keyState {
	var found *keyState
	at := p.turn
	for n := range p.keys {
		i := (at + n) % len(p.keys)
		k := &p.keys[i]
		if !k.pending() || k.err != nil && ClassOf(k.err) == Refused {
			continue
		}
		suspect := r.suspects.has(k.name)
		if found == nil || !suspect {
			found, p.turn = k, i+1
		}
		if !suspect {
			break
		}
	}
	return found
}

// send publishes groups, the ones that p has gathered last, and notes the result.
func (r *Relay) send(ctx context.Context, p *page, groups []Group) {
	before := r.accepted.Load()
	failed := failedKeys(r.publisher.Publish(ctx, groups), groups)
	accepted := p.settle(failed)
	if accepted > 0 {
		r.accepted.Add(uint64(accepted))
		r.outage.end()
		r.refusals.end()
	}
	if len(failed) == 0 && !r.suspects.any() {
		return
	}
	for _, i := range p.at {
		k := &p.keys[i]
		k.err = r.suspects.judge(k, before, r.opts.SuspectAfter)
	}
	if accepted == 0 {
		r.refusals.judge(p, r.opts.BlockAfter)
	}
}

// failedKeys returns what err says about each of groups.
func failedKeys(err error, groups []Group) []KeyError {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*PublishError](err); ok {
		return e.Keys
	}
	keys := make([]KeyError, len(groups))
	for i := range groups {
		keys[i] = KeyError{Group: i, Err: err}
	}
	return keys
}

// pause returns how long to wait after the n-th round, from 1: twice as long each time,
// no less than the broker asked for, spread over [0.8, 1.2).
func (r *Relay) pause(n int, err error) time.Duration {
	d := r.opts.PauseMin
	for ; n > 1 && d < r.opts.PauseMax; n-- {
		d *= 2
	}
	d = min(d, r.opts.PauseMax)
	if e, ok := errors.AsType[*Error](err); ok {
		d = max(d, e.RetryAfter)
	}
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// sleep returns true after d, false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool { return sleepUntil(ctx, d, nil) }

// sleepUntil is sleep that also ends, with true, when over is closed.
func sleepUntil(ctx context.Context, d time.Duration, over <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}
