package postgres

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"feedbox/infrastructure/store/recordstore"
)

// Pauses between two polls of the end of the feed. The pause doubles with each poll that finds
// nothing.
const (
	minPoll = time.Millisecond // after events were found
	maxPoll = 50 * time.Millisecond
)

// tail shares polls among the readers that have reached the end of the feed. The readers take
// turns, and each poll serves all of them. For single events in four ranges, that is a quarter of
// the polls.
type tail struct {
	turn   chan struct{} // capacity 1: held by the polling reader, guards next, pause, latest and unseen
	next   time.Time     // of the next poll
	pause  time.Duration
	latest *found
	unseen map[*reader]reader // the readers that have not received latest

	waiting sync.Map // of *reader, with a copy from when it began to wait
}

// poll returns the result of a poll since r began to wait, by r or by another reader; nil if until
// comes first.
func (t *tail) poll(ctx context.Context, f *Feed, r *reader, until time.Time) (*found, error) {
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
		return nil, ctx.Err() // not wrapped: a canceled call is no failure of the database
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
	t.pause = min(2*t.pause, maxPoll)
	if len(seen.events) > 0 {
		t.pause = minPoll
	}
	delete(unseen, r)
	t.next, t.latest, t.unseen = time.Now().Add(t.pause), seen, unseen
	return seen, nil
}
