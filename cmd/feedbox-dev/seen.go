package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/page/operations"
	"feedbox/infrastructure/process/console"
)

// seenEvents keeps the last events of the demo subscriber, for the page.
type seenEvents struct {
	mu    sync.Mutex
	byKey map[string]map[string]operations.Receipt
	order []received // oldest first
}

// received is an event that the subscriber received.
type received struct {
	ID, Key, Action   string
	Sequence, Version int64
	Received          time.Time
}

// maxSeen bounds the events kept.
const maxSeen = 5000

func newSeenEvents() *seenEvents {
	return &seenEvents{byKey: map[string]map[string]operations.Receipt{}}
}

// add adds an event. A redelivered one keeps its first time.
func (w *seenEvents) add(e *consumer.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, again := w.byKey[e.Key][e.ID]; again {
		return
	}
	if len(w.order) == maxSeen {
		oldest := w.order[0]
		w.order = slices.Delete(w.order, 0, 1)
		delete(w.byKey[oldest.Key], oldest.ID)
		if len(w.byKey[oldest.Key]) == 0 {
			delete(w.byKey, oldest.Key)
		}
	}
	now := time.Now()
	if w.byKey[e.Key] == nil {
		w.byKey[e.Key] = map[string]operations.Receipt{}
	}
	w.byKey[e.Key][e.ID] = operations.Receipt{Accepted: e.EnqueuedAt, Received: now}
	w.order = append(w.order, received{ID: e.ID, Key: e.Key, Action: e.Action, Sequence: e.Sequence, Version: e.AggregateVersion, Received: now})
}

// OfKey implements operations.Receipts.
func (w *seenEvents) OfKey(key string) map[string]operations.Receipt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.byKey[key])
}

// last returns the last n events, latest first.
func (w *seenEvents) last(n int) []received {
	w.mu.Lock()
	defer w.mu.Unlock()
	some := slices.Clone(w.order[max(0, len(w.order)-n):])
	slices.Reverse(some)
	return some
}

// closeTimeout bounds closing a client of the broker.
const closeTimeout = 5 * time.Second

// demoSubscriber is a consumer of the topic that prints its messages.
type demoSubscriber struct {
	processor interface {
		Run(ctx context.Context) error
	}
	close func() error // after Run
}

// printer prints events and keeps them for the page.
type printer struct {
	style console.Style
	seen  *seenEvents

	mu  sync.Mutex // guards out
	out io.Writer
}

func (d *demoSubscriber) run(ctx context.Context, started func()) error {
	started()
	return errors.Join(d.processor.Run(ctx), d.close())
}

// event prints an event: a summary, and the body as it was stored.
func (p *printer) event(_ context.Context, e *consumer.Event) error {
	if !json.Valid(e.Body) {
		return consumer.DeadLetter("not_json", fmt.Errorf("event %s has a body that is not JSON", e.ID))
	}
	p.seen.add(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.out, "event %s  contact %s  sequence %d  version %d\n  %s\n",
		p.style.Good(console.Clean(e.Action)), console.Clean(e.Key), e.Sequence, e.AggregateVersion, p.style.Faint(console.Plain(string(e.Body))))
	return err
}
