package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
)

// publish sends the pending messages of the page as far as the breaker admits them. It is the one
// way to the broker, for Handle and for the Drainer. It retries nothing: the caller passes
// messages that were not accepted again.
func (r *Relay) publish(ctx context.Context, p *page) {
	for slices.ContainsFunc(p.keys, func(k keyState) bool { return k.pending() }) {
		probe, turn, err := r.breaker.admit(ctx)
		switch {
		case err != nil:
			p.failPending(err)
			return
		case !probe:
			r.send(ctx, p, nil)
			return
		}
		r.sendProbe(ctx, p, turn)
	}
}

// sendKey publishes messages of one key.
func (r *Relay) sendKey(ctx context.Context, key string, messages []Message) *keyState {
	p := &page{keys: []keyState{{name: key, messages: messages, sendable: len(messages)}}}
	r.publish(ctx, p)
	return &p.keys[0]
}

// sendProbe sends one key and ends the probe, even if an observer panics: otherwise the breaker
// would wait for this probe for ever.
func (r *Relay) sendProbe(ctx context.Context, p *page, turn int) {
	defer r.breaker.endProbe()
	r.send(ctx, p, p.pendingKey(turn))
}

// failPending fails all pending keys with err.
func (p *page) failPending(err error) {
	for i := range p.keys {
		if k := &p.keys[i]; k.pending() {
			k.err = err
		}
	}
}

// pendingKey returns a pending key, a different one for each turn. There must be one.
func (p *page) pendingKey(turn int) *keyState {
	for n := range p.keys {
		if k := &p.keys[(turn+n)%len(p.keys)]; k.pending() {
			return k
		}
	}
	return nil
}

// send publishes the pending keys, or only one of them, and records the result. A key that
// failed before is sent alone, because it may have caused the failure of its batch. Its messages
// count as resent, because the failure may have been a lost answer.
func (r *Relay) send(ctx context.Context, p *page, only *keyState) {
	p.groups, p.groupKeys = p.groups[:0], p.groupKeys[:0]
	for i := range p.keys {
		if k := &p.keys[i]; k.pending() && (only == nil || only == k) {
			p.groups = append(p.groups, Group{Key: k.name, Messages: k.messages[k.sent:k.sendable]})
			p.groupKeys = append(p.groupKeys, k)
		}
	}
	p.resent += r.breaker.markAlone(p.groups)
	accepted := p.record(failedKeys(r.call(ctx, p.groups), p.groups))
	if ctx.Err() != nil {
		return // a send that ctx ended says nothing about the broker
	}
	if pause, paused := r.breaker.record(p, accepted); paused {
		notify(ctx, r.opts.Observer.Paused, pause)
	}
}

// call calls the publisher. A panic fails all groups, as an outage: the retries of the keys then
// find the one that causes it, and the others are sent.
func (r *Relay) call(ctx context.Context, groups []Group) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Class: Outage, Reason: "publisher_panic", Err: fmt.Errorf("the publisher panicked: %v\n%s", p, debug.Stack())}
		}
	}()
	return r.publisher.Publish(ctx, groups)
}

// record stores the result of a send and returns the number of accepted messages.
func (p *page) record(failed []KeyError) (accepted int) {
	for i, k := range p.groupKeys {
		sent := k.sendable - k.sent
		if len(failed) > 0 && failed[0].Group == i {
			sent, k.err = failed[0].Sent, failed[0].Err
			failed = failed[1:]
		}
		k.accepted = sent
		k.sent += sent
		accepted += sent
	}
	return accepted
}

// failedKeys returns the failed keys in err. An error that is not a *PublishError fails all
// groups.
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
