package explorer

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
)

const (
	shownChanges = 100              // of a change feed
	pagesAtOnce  = 5                // of each range, in one look
	forgotten    = 30 * time.Second // a tail nobody looks at begins anew after that
	lookPause    = 900 * time.Millisecond
	maxTails     = 50
)

// tails are the change feeds that somebody looks at.
type tails struct {
	mu  sync.Mutex // guards all
	all map[string]*tail
}

// tail is the end of one container's change feed, since somebody looks at it. Open tabs
// share it.
type tail struct {
	mu      sync.Mutex // guards what follows
	feed    *cosmosfeed.Feed
	at      map[changefeed.FeedRange]string // continuations
	since   time.Time
	looked  time.Time
	changes []change // the latest first
	total   int
}

// change is one change of a document.
type change struct {
	At   time.Time
	LSN  int64
	From string // the range
	row
}

// seen is what the view shows.
type seen struct {
	Database, Name string
	Since          time.Time
	Total          int
	Changes        []change
}

func (e *Explorer) feed(r *http.Request) (any, error) {
	db, coll := r.PathValue("db"), r.PathValue("coll")
	if _, err := e.cosmos.PartitionKeyRanges(db, coll); err != nil {
		return nil, missing("container", "The list of containers leads to all there are.")
	}
	t, err := e.tailOf(db, coll)
	if err != nil {
		return nil, err
	}
	client, err := e.client.NewContainer(db, coll)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.looked) >= lookPause {
		paths, err := keyPaths(r.Context(), client)
		if err == nil {
			err = t.look(r.Context(), now, paths)
		}
		if err != nil {
			return nil, inWords(err)
		}
		t.looked = now
	}
	return &seen{db, coll, t.since, t.total, slices.Clone(t.changes)}, nil
}

func (e *Explorer) tailOf(db, coll string) (*tail, error) {
	e.tails.mu.Lock()
	defer e.tails.mu.Unlock()
	name := db + "/" + coll
	if t := e.tails.all[name]; t != nil {
		return t, nil
	}
	feed, err := cosmosfeed.NewFeed(e.client, db, coll)
	if err != nil {
		return nil, err
	}
	if e.tails.all == nil || len(e.tails.all) >= maxTails {
		e.tails.all = map[string]*tail{}
	}
	t := &tail{feed: feed}
	e.tails.all[name] = t
	return t, nil
}

// look reads what has come since the last look. The caller holds mu.
func (t *tail) look(ctx context.Context, now time.Time, paths []string) error {
	if now.Sub(t.looked) > forgotten {
		t.at, t.changes, t.total, t.since = nil, nil, 0, now
		ranges, err := t.feed.Ranges(ctx)
		if err != nil {
			return err
		}
		at := map[changefeed.FeedRange]string{}
		for _, r := range ranges {
			if at[r], err = t.feed.Now(ctx, r); err != nil {
				return err
			}
		}
		t.at = at
	}
	var come []change
	for r, from := range t.at {
		for range pagesAtOnce {
			page, err := t.feed.Read(ctx, changefeed.ReadRequest{Range: r, Continuation: from, MaxItems: shownChanges})
			if split, ok := errors.AsType[*changefeed.SplitError](err); ok {
				delete(t.at, r)
				for _, child := range split.Children {
					t.at[child] = from
				}
				break // they are read at the next look
			}
			if err != nil {
				return err
			}
			for i := range page.Items {
				item := &page.Items[i]
				come = append(come, change{item.Time(), item.LSN, r.String(), rowOf(item.Raw, paths)})
			}
			from, t.at[r] = page.Continuation, page.Continuation
			caughtUp := page.CaughtUp
			if page.Release != nil {
				page.Release()
			}
			if caughtUp {
				break
			}
		}
	}
	slices.SortStableFunc(come, func(a, b change) int { return b.At.Compare(a.At) })
	t.total += len(come)
	t.changes = slices.Concat(come, t.changes)
	t.changes = t.changes[:min(len(t.changes), shownChanges)]
	return nil
}
