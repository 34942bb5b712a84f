package main

import (
	"slices"
	"sync"
	"time"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/page/operations"
)

// seenEvents remembers what the demo subscriber received, for the page.
type seenEvents struct {
	mu    sync.Mutex
	byKey map[string]map[string]operations.Receipt
	order []received // the oldest first
}

// received is an event as the subscriber got it.
type received struct {
	ID, Key, Action   string
	Sequence, Version int64
	Received          time.Time
}

// maxWitnessed bounds the events that are remembered.
const maxWitnessed = 5000

func newSeenEvents() *seenEvents {
	return &seenEvents{byKey: map[string]map[string]operations.Receipt{}}
}

// saw notes an event. One that comes again keeps its first time.
func (w *seenEvents) saw(e *consumer.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, again := w.byKey[e.Key][e.ID]; again {
		return
	}
	if len(w.order) == maxWitnessed {
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
	seen := make(map[string]operations.Receipt, len(w.byKey[key]))
	for id, one := range w.byKey[key] {
		seen[id] = one
	}
	return seen
}

// last are the events received last, the latest first.
func (w *seenEvents) last(n int) []received {
	w.mu.Lock()
	defer w.mu.Unlock()
	some := slices.Clone(w.order[max(0, len(w.order)-n):])
	slices.Reverse(some)
	return some
}
