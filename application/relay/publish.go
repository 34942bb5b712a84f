package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// publish sends the pending messages of the page as far as the breakers admit them. It is the one
// way to the broker, for Handle and for the Drainer. It retries nothing: the caller passes
// messages that were not accepted again.
//
// Shards do not wait for each other to send, but publish waits for all of them. Each goroutine
// has a page of its own over the same keys, and uses only those of its shard.
func (r *Relay) publish(ctx context.Context, p *page) {
	if len(r.breakers) == 1 {
		r.publishTo(ctx, r.breakers[0], p)
		return
	}
	shards, panics := make([]page, len(r.breakers)), make([]any, len(r.breakers))
	for i := range p.keys {
		p.keys[i].shard = r.opts.ShardOf(p.keys[i].name)
	}
	var running sync.WaitGroup
	for n := range shards {
		part := &shards[n]
		part.keys, part.shard = p.keys, n
		running.Go(func() {
			defer func() { panics[n] = recover() }() // of an observer; the caller handles it
			r.publishTo(ctx, r.breakers[n], part)
		})
	}
	running.Wait()
	for n := range shards {
		p.resent += shards[n].resent
		if panics[n] != nil {
			panic(panics[n])
		}
	}
}

// publishTo sends the pending messages of one shard.
func (r *Relay) publishTo(ctx context.Context, b *breaker, p *page) {
	for p.pendingKey(0) != nil {
		probe, turn, err := b.admit(ctx)
		switch {
		case err != nil:
			p.failPending(err)
			return
		case !probe:
			r.send(ctx, b, p, nil)
			return
		}
		r.sendProbe(ctx, b, p, turn)
	}
}

// breakerOf returns the breaker of a key.
func (r *Relay) breakerOf(key string) *breaker {
	if len(r.breakers) == 1 {
		return r.breakers[0]
	}
	return r.breakers[r.opts.ShardOf(key)]
}

// sendKey publishes messages of one key.
func (r *Relay) sendKey(ctx context.Context, key string, messages []Message) *keyState {
	p := &page{keys: []keyState{{name: key, messages: messages, sendable: len(messages)}}}
	r.publish(ctx, p)
	return &p.keys[0]
}

// sendProbe sends one key and ends the probe, even if an observer panics: otherwise the breaker
// would wait for this probe for ever.
func (r *Relay) sendProbe(ctx context.Context, b *breaker, p *page, turn int) {
	defer b.endProbe()
	r.send(ctx, b, p, p.pendingKey(turn))
}

// pending reports whether a key of the page's shard is pending.
func (p *page) pending(k *keyState) bool { return k.shard == p.shard && k.pending() }

// failPending fails all pending keys with err.
func (p *page) failPending(err error) {
	for i := range p.keys {
		if k := &p.keys[i]; p.pending(k) {
			k.err = err
		}
	}
}

// pendingKey returns a pending key, a different one for each turn, or nil.
func (p *page) pendingKey(turn int) *keyState {
	for n := range p.keys {
		if k := &p.keys[(turn+n)%len(p.keys)]; p.pending(k) {
			return k
		}
	}
	return nil
}

// send publishes the pending keys, or only one of them, and records the result. A key that
// failed before is sent alone, because it may have caused the failure of its batch. Its messages
// count as resent, because the failure may have been a lost answer.
func (r *Relay) send(ctx context.Context, b *breaker, p *page, only *keyState) {
	p.groups, p.groupKeys = p.groups[:0], p.groupKeys[:0]
	for i := range p.keys {
		if k := &p.keys[i]; p.pending(k) && (only == nil || only == k) {
			p.groups = append(p.groups, Group{Key: k.name, Messages: k.messages[k.sent:k.sendable]})
			p.groupKeys = append(p.groupKeys, k)
		}
	}
	p.resent += b.markAlone(p.groups)
	accepted := p.record(failedKeys(r.call(ctx, p.groups), p.groups))
	if ctx.Err() != nil {
		return // a send that ctx ended says nothing about the broker
	}
	if pause, paused := b.record(p, accepted); paused {
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
