package world

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/lab/verify"
)

// received holds the messages handled by all consumers and the reported losses.
type received struct {
	inbox *consumer.MemoryInbox // shared by all consumers, like one in a database

	mu      sync.Mutex // guards the fields below
	handled []verify.Message
	ids     map[string]bool
	repeats int // deliveries dropped by the inbox
	lost    []verify.Loss
	warned  bool // a relay warned of aging events
	slow    time.Duration
}

func (r *received) init() {
	r.inbox, r.ids = consumer.NewMemoryInbox(0), map[string]bool{}
}

// runConsumer runs a consumer until ctx ends.
func (w *World) runConsumer(ctx context.Context, n *nic, log *slog.Logger) error {
	namespace := servicebus.ClientConfig{ConnectionString: w.Bus().ConnectionString(), Dial: n.dialBus}
	handler := func(ctx context.Context, e *consumer.Event) error { return w.received.handle(ctx, n, e) }
	p, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription(Topic, Subscription), handler, &subscriber.SessionOptions{
		Sessions: w.topology.Sessions, Inbox: inbox{w.received.inbox, n}, DrainTimeout: 5 * time.Second, RetryDelayMax: 5 * time.Second,
		Observe: func(_ context.Context, o consumer.Outcome) { w.received.observe(n, o) }, Logger: log,
	})
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// handle is the handler of every consumer.
func (r *received) handle(ctx context.Context, n *nic, e *consumer.Event) error {
	if err := n.gate(); err != nil {
		return err
	}
	r.mu.Lock()
	slow := r.slow
	r.mu.Unlock()
	if slow > 0 {
		timer := time.NewTimer(slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := n.gate(); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[e.ID] = true
	r.handled = append(r.handled, verify.Message{ID: e.ID, Session: e.Key, Subject: e.Action, Version: e.AggregateVersion, Sequence: e.Sequence})
	return nil
}

// observe counts repeats and records the gaps that an inbox no longer waits for.
func (r *received) observe(n *nic, o consumer.Outcome) {
	if !n.alive() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case o.Verdict == consumer.Duplicate || o.Verdict == consumer.Stale:
		r.repeats++
	case o.Verdict == consumer.Gap && o.Action != consumer.Abandoned:
		r.lost = append(r.lost, verify.Loss{Key: o.Event.Key, First: o.Event.Sequence - o.Missing, Last: o.Event.Sequence - 1})
	}
}

// missing records a relay's report of lost events.
func (r *received) missing(report map[string]slog.Value) {
	if lost, ok := report["lost"]; !ok || !lost.Bool() {
		return // first event of a key for a new owner; perhaps nothing is lost
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = append(r.lost, verify.Loss{Key: report["key"].String(), First: report["first"].Int64(), Last: report["last"].Int64()})
}

// aging records a relay's warning that events will expire.
func (r *received) aging() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warned = true
}

func (r *received) setSlow(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slow = d
}

// SlowConsumers delays every handler by d.
func (w *World) SlowConsumers(d time.Duration) {
	w.trace.Add("consumers", "SLOW %s", d)
	w.received.setSlow(d)
}

// inbox is the shared inbox over the network of one process.
type inbox struct {
	consumer.Inbox
	nic *nic
}

func (i inbox) Last(ctx context.Context, key string) (consumer.Mark, error) {
	if err := i.nic.gate(); err != nil {
		return consumer.Mark{}, err
	}
	return i.Inbox.Last(ctx, key)
}

func (i inbox) Record(ctx context.Context, key string, m consumer.Mark) error {
	if err := i.nic.gate(); err != nil {
		return err
	}
	return i.Inbox.Record(ctx, key, m)
}
