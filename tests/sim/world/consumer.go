package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cosmosinbox"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/store/cosmos/parked"
)

// The processes of a parking consumer share its inbox, the effects of its handlers and its parked events.
const (
	consumerName = "sim"
	inboxName    = "inbox" // the container of inbox and effects; events are parked in that of the relays
)

// received has the messages handled by plain consumers, the state of the handlers of parking ones, and the
// reports of all.
type received struct {
	inbox   *consumer.MemoryInbox // of the plain consumers, shared like one in a database
	moods   moods
	effects atomic.Int64 // number of the last effect

	mu      sync.Mutex // guards the fields below
	handled []verify.Message
	ids     map[string]bool
	repeats int // deliveries dropped by the inbox
	lost    []verify.Loss
	warned  bool // a relay warned of aging events
	slow    time.Duration
}

func (r *received) init(rnd *rand.Rand) {
	r.inbox, r.ids = consumer.NewMemoryInbox(0), map[string]bool{}
	r.moods.init(rnd)
}

// runConsumer runs a consumer until ctx ends.
func (w *World) runConsumer(ctx context.Context, n *nic, log *slog.Logger) error {
	o := &subscriber.SessionOptions{
		Sessions: w.topology.Sessions, DrainTimeout: 5 * time.Second, RetryDelayMax: 5 * time.Second,
		Observe: func(_ context.Context, o consumer.Outcome) { w.received.observe(n, o) }, Logger: log,
	}
	handler := func(ctx context.Context, e *consumer.Event) error { return w.received.note(ctx, n, e) }
	if o.Inbox = (memory{w.received.inbox, n}); w.topology.Parking {
		client, done, err := w.clientOf(n)
		defer done()
		if err != nil {
			return err
		}
		inbox, park, err := storesOf(client)
		if err != nil {
			return err
		}
		o.Inbox, o.Park, o.Attempts, o.Policies = inbox, park, attempts, policies
		handler = func(ctx context.Context, e *consumer.Event) error { return w.received.handle(ctx, n, inbox, e) }
	}
	namespace := servicebus.ClientConfig{ConnectionString: w.Bus().ConnectionString(), Dial: n.dialBus}
	p, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription(Topic, Subscription), handler, o)
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// storesOf returns the stores of a parking consumer.
func storesOf(client *azcosmos.Client) (*cosmosinbox.Inbox, consumer.ParkedStore, error) {
	marks, err := client.NewContainer(Database, inboxName)
	aside, err1 := client.NewContainer(Database, Parked)
	if err := errors.Join(err, err1); err != nil {
		return nil, nil, err
	}
	inbox, err := cosmosinbox.New(marks, consumerName, nil)
	all, err1 := parked.NewStore(aside)
	if err := errors.Join(err, err1); err != nil {
		return nil, nil, err
	}
	own, err := all.Of(consumerName)
	return inbox, own, err
}

// note is the handler of plain consumers.
func (r *received) note(ctx context.Context, n *nic, e *consumer.Event) error {
	if err := n.pause(ctx, r.slowness()); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[e.ID] = true
	r.handled = append(r.handled, verify.Message{ID: e.ID, Session: e.Key, Subject: e.Action, Version: e.AggregateVersion, Sequence: e.Sequence})
	return nil
}

// pause is the time that a handler takes. It returns an error if the process has crashed or ctx has ended.
func (n *nic) pause(ctx context.Context, d time.Duration) error {
	if err := n.gate(); err != nil || d == 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return n.gate()
}

// handle is the handler of parking consumers. Its effect is a document that is stored with the mark of the
// event. Each has another id, so an event that is handled twice has two.
func (r *received) handle(ctx context.Context, n *nic, inbox *cosmosinbox.Inbox, e *consumer.Event) error {
	if err := r.moods.act(ctx, n, e, r.slowness()); err != nil {
		return err
	}
	batch, err := inbox.Batch(ctx, e)
	if err != nil {
		return consumer.Unavailable(err) // the store says nothing about the event
	}
	number := r.effects.Add(1)
	body, err := json.Marshal(effect{
		ID: fmt.Sprintf("effect-%d", number), Key: e.Key, Type: effectType, Number: number,
		Event: e.ID, Action: e.Action, Version: e.AggregateVersion, Sequence: e.Sequence,
	})
	if err != nil {
		return err
	}
	batch.CreateItem(body, nil)
	if err := batch.Execute(ctx); err != nil {
		return consumer.Unavailable(err)
	}
	return n.gate()
}

const effectType = "effect"

// effect is the stored effect of a handler.
type effect struct {
	ID       string `json:"id"`
	Key      string `json:"partitionKey"`
	Type     string `json:"type"`
	Number   int64  `json:"number"` // in the order of the calls of handlers
	Event    string `json:"event"`
	Action   string `json:"action"`
	Version  int64  `json:"aggregateVersion"`
	Sequence int64  `json:"sequence"`
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

// aging records a relay's warning that events will expire, or may have.
func (r *received) aging() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warned = true
}

func (r *received) slowness() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slow
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

// memory is the inbox of plain consumers over the network of one process.
type memory struct {
	consumer.Inbox
	nic *nic
}

func (m memory) Last(ctx context.Context, key string) (consumer.Mark, error) {
	if err := m.nic.gate(); err != nil {
		return consumer.Mark{}, err
	}
	return m.Inbox.Last(ctx, key)
}

func (m memory) Record(ctx context.Context, key string, mark consumer.Mark) error {
	if err := m.nic.gate(); err != nil {
		return err
	}
	return m.Inbox.Record(ctx, key, mark)
}
