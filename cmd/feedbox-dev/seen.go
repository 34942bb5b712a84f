package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/page/operations"
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
