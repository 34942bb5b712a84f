package world

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/relay/relayport"
)

// consumed is the state of the consumers in the store.
type consumed struct {
	effects []effect                    // in the order of the calls of handlers
	handled map[string]bool             // events with an effect
	skipped map[string]bool             // events
	parked  map[string][]parkedDocument // by key, in order
	gates   map[string]gateDocument     // by key
}

// gateDocument and parkedDocument are the parts of the documents of a parked key that are read here.
type gateDocument struct {
	Closing struct {
		Event string `json:"event"`
	} `json:"closing"`
	Intent *json.RawMessage `json:"intent"`
}

type parkedDocument struct {
	ID       string `json:"id"`
	Position int64  `json:"position"`
	Sequence int64  `json:"sequence"`
}

// consumed reads the state of the consumers without the network.
func (w *World) consumed() consumed {
	c := consumed{handled: map[string]bool{}, skipped: map[string]bool{}, parked: map[string][]parkedDocument{}, gates: map[string]gateDocument{}}
	for _, raw := range w.raw(inboxName) {
		var e effect
		if json.Unmarshal(raw, &e) == nil && e.Type == effectType {
			c.effects, c.handled[e.Event] = append(c.effects, e), true
		}
	}
	slices.SortFunc(c.effects, func(a, b effect) int { return cmp.Compare(a.Number, b.Number) })
	for _, raw := range w.raw(Parked) {
		var d struct {
			Type string `json:"type"`
			Key  string `json:"partitionKey"`
			parkedDocument
			gateDocument
		}
		kind, own := "", false
		if json.Unmarshal(raw, &d) == nil {
			kind, own = strings.CutSuffix(d.Type, ":"+consumerName)
		}
		key := strings.TrimPrefix(d.Key, "consumer/"+consumerName+"/")
		switch {
		case !own:
		case kind == "gate":
			c.gates[key] = d.gateDocument
		case kind == "parkedEvent":
			c.parked[key] = append(c.parked[key], d.parkedDocument)
		case kind == "skippedEvent":
			c.skipped[strings.TrimPrefix(d.ID, "$skipped-")] = true
		}
	}
	for _, events := range c.parked {
		slices.SortFunc(events, func(a, b parkedDocument) int { return cmp.Compare(a.Position, b.Position) })
	}
	return c
}

// allHandled reports whether each accepted message has its effect or is parked or skipped, and no
// operator waits for a consumer.
func (w *World) allHandled() bool {
	if w.topology.Consumers == 0 {
		return true
	}
	if !w.topology.parks() {
		return w.received.all(w.archived())
	}
	c := w.consumed()
	there := map[string]bool{}
	for key, g := range c.gates {
		if g.Intent != nil {
			return false
		}
		for _, e := range c.parked[key] {
			there[e.ID] = true
		}
	}
	return !slices.ContainsFunc(w.archived(), func(m verify.Message) bool {
		return !c.handled[m.ID] && !c.skipped[m.ID] && !there[m.ID]
	})
}

// all reports whether plain consumers have handled all messages.
func (r *received) all(messages []verify.Message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(messages, func(m verify.Message) bool { return !r.ids[m.ID] })
}

// endParking checks the parked keys of the consumers, makes the handlers accept everything, and lets an
// operator retry all keys. Then nothing may be parked any more.
func (w *World) endParking() {
	if !w.topology.parks() {
		return
	}
	c := w.consumed()
	w.trace.Add("world", "%d effects, %d keys parked by consumers, %d events skipped", len(c.effects), len(c.gates), len(c.skipped))
	for key, g := range c.gates {
		if !w.received.moods.isBlamed(g.Closing.Event) {
			w.violation("I8 consumer: key %s is parked for event %s, which no handler refused", key, g.Closing.Event)
		}
	}
	for key, events := range c.parked {
		if _, closed := c.gates[key]; !closed {
			w.violation("I8 consumer: %d events of key %s are parked without a gate, so no operator finds them", len(events), key)
		}
		if !slices.IsSortedFunc(events, func(a, b parkedDocument) int { return cmp.Compare(a.Sequence, b.Sequence) }) {
			w.violation("I3 consumer: the parked events of key %s are not in order: %+v", key, events)
		}
	}
	for id := range c.skipped {
		if !w.wasSkipAsked(id) {
			w.violation("I8 consumer: event %s was skipped, which no operator asked for", id)
		}
	}
	w.received.moods.mend()
	w.Sleep(w.topology.StaleReads) // otherwise the operator may not see a key that was parked just now
	if err := w.RetryConsumer(); err != nil {
		w.harness("retry the parked keys of the consumers: %v", err)
	}
	if !w.Eventually(patience, func() bool { c = w.consumed(); return len(c.gates) == 0 && len(c.parked) == 0 }) {
		w.violation("I2 consumer: keys stay parked after a retry: %v, %v", c.gates, c.parked)
	}
}

// messages returns the effects as messages, in order.
func (c *consumed) messages() []verify.Message {
	all := make([]verify.Message, 0, len(c.effects))
	for i := range c.effects {
		e := &c.effects[i]
		all = append(all, verify.Message{ID: e.Event, Session: e.Key, Subject: e.Action, Version: e.Version, Sequence: e.Sequence})
	}
	return all
}

// RetryConsumer asks the consumers to retry all their parked keys, as feedbox parked retry --consumer
// does.
func (w *World) RetryConsumer() error {
	return w.operateConsumer(func(ctx context.Context, store relayport.Parked, key string) error {
		_, err := store.SetIntent(ctx, key, relay.Intent{Verb: relay.VerbRetry, By: "simulation", At: time.Now()})
		return err
	})
}

// SkipFirst asks the consumers to skip the first parked event of each key for which chosen returns true.
func (w *World) SkipFirst(chosen func() bool) error {
	return w.operateConsumer(func(ctx context.Context, store relayport.Parked, key string) error {
		if !chosen() {
			return nil
		}
		first, err := store.First(ctx, key, 1, 1<<20)
		if err != nil || len(first) == 0 {
			return err
		}
		w.mu.Lock()
		w.skips[first[0].ID] = true
		w.mu.Unlock()
		_, err = store.SetIntent(ctx, key, relay.Intent{Verb: relay.VerbSkip, Event: first[0].ID, By: "simulation", At: time.Now()})
		return err
	})
}

func (w *World) wasSkipAsked(event string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.skips[event]
}

// operateConsumer calls act for each parked key of the consumers. It returns the errors of all calls.
func (w *World) operateConsumer(act func(ctx context.Context, store relayport.Parked, key string) error) error {
	var errs []error
	err := w.operate(w.outboxes[:1], func(ctx context.Context, _ *changefeed.Operator, relays *relayport.Store) error {
		store, err := relays.ParkedOf(consumerName)
		if err != nil {
			return err
		}
		gates, err := store.Gates(ctx)
		for _, g := range gates {
			if failed := act(ctx, store, g.Key); !fault.Is(failed, fault.NotFound) { // opened meanwhile
				errs = append(errs, failed)
			}
		}
		return err
	})
	return errors.Join(err, errors.Join(errs...))
}
