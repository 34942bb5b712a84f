package relay

import (
	"context"
	"errors"
	"slices"
)

// publish sends what the page has to send, as far as the judge lets it. It tries
// nothing twice: what was not accepted is the caller's to hand over again.
func (r *Relay) publish(ctx context.Context, p *page) {
	for slices.ContainsFunc(p.keys, func(k keyState) bool { return k.pending() }) {
		probe, turn, err := r.judge.ask(ctx)
		switch {
		case err != nil:
			p.wait(err)
			return
		case !probe:
			r.send(ctx, p, nil)
			return
		}
		r.send(ctx, p, p.next(turn))
		r.judge.endProbe()
	}
}

// wait makes err what all pending keys wait for.
func (p *page) wait(err error) {
	for i := range p.keys {
		if k := &p.keys[i]; k.pending() {
			k.err = err
		}
	}
}

// next returns a pending key, another one for another turn. There is one.
func (p *page) next(turn int) *keyState {
	for n := range p.keys {
		if k := &p.keys[(turn+n)%len(p.keys)]; k.pending() {
			return k
		}
	}
	return nil
}

// send publishes what is pending, or only that of one key, and notes the result. A key
// that failed before may have been accepted all the same, and is sent alone.
func (r *Relay) send(ctx context.Context, p *page, only *keyState) {
	p.groups, p.of = p.groups[:0], p.of[:0]
	for i := range p.keys {
		if k := &p.keys[i]; k.pending() && (only == nil || only == k) {
			p.groups = append(p.groups, Group{Key: k.name, Messages: k.messages[k.sent:k.sendable]})
			p.of = append(p.of, k)
		}
	}
	p.resent += r.judge.setApart(p.groups)
	accepted := p.settle(failedKeys(r.publisher.Publish(ctx, p.groups), p.groups))
	if ctx.Err() != nil {
		return // what ctx ended shows nothing
	}
	if pause, paused := r.judge.judge(p, accepted); paused {
		tell(ctx, r.opts.Observer.Paused, pause)
	}
}

// settle notes the result of publishing groups. It returns how many messages were
// accepted.
func (p *page) settle(failed []KeyError) (accepted int) {
	for i, k := range p.of {
		sent := k.sendable - k.sent
		if len(failed) > 0 && failed[0].Group == i {
			sent, k.err = failed[0].Sent, failed[0].Err
			failed = failed[1:]
		}
		k.sent += sent
		accepted += sent
	}
	return accepted
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
