package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// administration is a change of the catalog and what it writes.
type administration struct {
	b       *Broker
	records []func(w *writer)
	left    []remains // of dropped holders
	later   callbacks
	done    chan<- error
}

// administer runs change with the catalog locked and waits until what it saved is
// durable. A change that fails must have changed nothing.
func (b *Broker) administer(ctx context.Context, change func(*administration) error) error {
	done, err := b.change(change)
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// change is administer without the wait.
func (b *Broker) change(change func(*administration) error) (done <-chan error, err error) {
	if b.closed.Load() {
		return nil, closed()
	}
	if err := b.store.refusal(); err != nil {
		return nil, err // also of what is there already: it may not be stored
	}
	ended := make(chan error, 1)
	a := &administration{b: b, done: ended}
	defer a.later.run()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := change(a); err != nil {
		return nil, err
	}
	b.submit(a, &a.later)
	return ended, nil
}

func (a *administration) write(w *writer) {
	if w != nil {
		for _, record := range a.records {
			record(w)
		}
	}
	for _, r := range a.left {
		r.release(w)
	}
}

func (a *administration) publish(*callbacks) {}
func (a *administration) finish(err error)   { a.done <- err }

// save stores an entity.
func (a *administration) save(id uint32, r entityRecord) {
	value, err := json.Marshal(r)
	last := a.b.lastID
	a.records = append(a.records, func(w *writer) {
		if err != nil {
			w.keep(fmt.Errorf("encode entity %s: %w", r.Name, err))
			return
		}
		w.putEntity(id, value)
		w.putLastID(last)
	})
}

// drop removes an entity's holders, and the entity from the store.
func (a *administration) drop(id uint32, s holders) {
	a.left = append(a.left, s.retire(&a.later)...)
	a.records = append(a.records, func(w *writer) {
		w.deleteEntity(id)
		for _, h := range s.all() {
			if h.id != 0 { // the transfer queue is not stored
				w.deleteHolder(h)
			}
		}
	})
}

// checkNameFree checks that no entity has a name.
func (b *Broker) checkNameFree(name string) error {
	key := strings.ToLower(name)
	if b.queues[key] != nil || b.topics[key] != nil {
		return errorf(EntityExists, "The messaging entity '%s' already exists.", name)
	}
	return nil
}

func (b *Broker) newTimes() Times {
	now := b.Now()
	return Times{CreatedAt: now, UpdatedAt: now, AccessedAt: now}
}

func accessed(t Times, used ...int64) time.Time {
	last := t.AccessedAt
	for _, u := range used {
		if u != 0 && at(u).After(last) {
			last = at(u)
		}
	}
	return last
}

// newInlet makes the inlet of an entity. One that is partitioned and has no number of
// partitions was stored when there was one only, and keeps to that.
func (b *Broker) newInlet(kind EntityKind, path string, partitioned bool, partitions int) *inlet {
	in := &inlet{
		b: b, path: path, kind: kind, partitioned: partitioned, partitions: max(1, partitions), senders: make(map[*Sender]struct{}),
	}
	in.sweep.fire = in.fireSweep
	return in
}

// reconfigure gives the inlet a new configuration.
func (in *inlet) reconfigure(c inletConfig, window int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	c.quotaOverride = in.config.quotaOverride
	in.config = c
	if in.history != nil {
		in.history.window = window
	}
}

// retire ends the inlet for good.
func (in *inlet) retire(reason error, later *callbacks) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.detach(reason, later)
	in.gone = true
	in.b.timers.set(&in.sweep, 0)
}

// reconfigure gives the holders a new configuration.
func (s holders) reconfigure(c holderConfig, deadLettersTo string, later *callbacks) {
	for _, h := range s.all() {
		h.mu.Lock()
		switch h {
		case s.main:
			h.config = c
		default:
			h.config.lockDuration, h.config.receiveDisabled = c.lockDuration, c.receiveDisabled
		}
		if h == s.deadLetter {
			h.config.forwardTo = deadLettersTo
		}
		h.forward(later)
		h.mu.Unlock()
	}
}

// SetStatus changes an entity's status and nothing else, and closes its links.
func (b *Broker) SetStatus(ctx context.Context, path string, s Status) error {
	if err := b.setStatus(ctx, path, s); err != nil {
		return err
	}
	return b.DetachAll(path, detached(path))
}

func (b *Broker) setStatus(ctx context.Context, path string, s Status) error {
	b.mu.RLock()
	n, ok := b.find(path)
	b.mu.RUnlock()
	switch {
	case !ok || n.suffix != "":
		return notFound(path)
	case n.queue != nil:
		i, err := b.Queue(n.queue.name)
		if err == nil {
			i.Status = s
			_, err = b.UpdateQueue(ctx, i.Queue)
		}
		return err
	case n.topic != nil:
		i, err := b.Topic(n.topic.name)
		if err == nil {
			i.Status = s
			_, err = b.UpdateTopic(ctx, i.Topic)
		}
		return err
	}
	i, err := b.Subscription(n.subscription.topic.name, n.subscription.name)
	if err == nil {
		i.Status = s
		_, err = b.UpdateSubscription(ctx, i.Topic, i.Subscription)
	}
	return err
}
