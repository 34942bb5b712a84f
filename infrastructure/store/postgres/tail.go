package postgres

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"feedbox/infrastructure/store/recordstore"
)

// The pauses between two looks at the end of the feed: the first after events were found.
const (
	firstLook = time.Millisecond
	lastLook  = 50 * time.Millisecond
)

// tail is the end of the feed. Readers whose ranges are read up to it take turns: each look
// serves all who wait, and with events that come one by one costs a quarter of what four
// ranges would pay alone.
type tail struct {
	turn   chan struct{} // capacity 1: held by who looks, guards next, pause and latest
	next   time.Time     // when to look again
	pause  time.Duration
	latest *found
	unseen map[*reader]reader // who has not had the latest

	waiting sync.Map // of *reader, with what it waits for
}

// look returns what a look has found since r began to wait, its own or that of another reader;
// nil if until comes first.
func (t *tail) look(ctx context.Context, f *Feed, r *reader, until time.Time) (*found, error) {
	t.waiting.Store(r, *r)
	defer t.waiting.Delete(r)
	over := time.NewTimer(time.Until(until))
	defer over.Stop()
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-over.C:
		return nil, nil //nolint:nilnil // see above
	case <-ctx.Done():
		return nil, ctx.Err() // what a caller gives up is no failure of the database
	}
	if _, mine := t.unseen[r]; mine {
		delete(t.unseen, r)
		return t.latest, nil
	}
	pause := time.Until(t.next)
	if pause > time.Until(until) {
		return nil, nil //nolint:nilnil // see above
	}
	if err := recordstore.Pause(ctx, pause); err != nil {
		return nil, err
	}
	unseen := map[*reader]reader{}
	t.waiting.Range(func(who, waits any) bool {
		unseen[who.(*reader)] = waits.(reader)
		return true
	})
	seen, err := f.look(ctx, slices.Collect(maps.Values(unseen))...)
	if err != nil {
		return nil, err
	}
	t.pause = min(2*t.pause, lastLook)
	if len(seen.events) > 0 {
		t.pause = firstLook
	}
	delete(unseen, r)
	t.next, t.latest, t.unseen = time.Now().Add(t.pause), seen, unseen
	return seen, nil
}
