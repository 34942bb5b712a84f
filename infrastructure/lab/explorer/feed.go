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
	pagesPerPoll = 5                // of each range
	idleTimeout  = 30 * time.Second // a tail that is not polled for this long starts again
	pollPause    = 900 * time.Millisecond
	maxTails     = 50
)

// tails has the tails of the change feeds in use.
type tails struct {
	mu  sync.Mutex // guards all
	all map[string]*tail
}

// tail has the changes of one container since its change feed was opened in a browser. Open
// tabs share it.
type tail struct {
	mu      sync.Mutex // guards the fields below
	feed    *cosmosfeed.Feed
	at      map[changefeed.FeedRange]string // continuations
	since   time.Time
	polled  time.Time
	changes []change // latest first
	total   int
}

// change is one change of a document.
type change struct {
	At   time.Time
	LSN  int64
	From string // the range
	row
}

// seen is the data of the view.
type seen struct {
	Database, Name string
	Since          time.Time
	Total          int
	Changes        []change
}

func (e *Explorer) feed(r *http.Request) (any, error) {
	db, coll := r.PathValue("db"), r.PathValue("coll")
	if _, err := e.cosmos.PartitionKeyRanges(db, coll); err != nil {
		return nil, missing("container", "See the list of containers.")
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
	if now := time.Now(); now.Sub(t.polled) >= pollPause {
		paths, err := keyPaths(r.Context(), client)
		if err == nil {
			err = t.poll(r.Context(), now, paths)
		}
		if err != nil {
			return nil, cosmosRefused(err)
		}
		t.polled = now
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

// poll reads the changes since the last poll. The caller holds mu.
func (t *tail) poll(ctx context.Context, now time.Time, paths []string) error {
	if now.Sub(t.polled) > idleTimeout {
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
	var latest []change
	for r, from := range t.at {
		for range pagesPerPoll {
			page, err := t.feed.Read(ctx, changefeed.ReadRequest{Range: r, Continuation: from, MaxItems: shownChanges})
			if split, ok := errors.AsType[*changefeed.SplitError](err); ok {
				delete(t.at, r)
				for _, child := range split.Children {
					t.at[child] = from
				}
				break // the next poll reads the children
			}
			if err != nil {
				return err
			}
			for i := range page.Items {
				item := &page.Items[i]
				latest = append(latest, change{item.Time(), item.LSN, r.String(), rowOf(item.Raw, paths)})
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
	slices.SortStableFunc(latest, func(a, b change) int { return b.At.Compare(a.At) })
	t.total += len(latest)
	t.changes = slices.Concat(latest, t.changes)
	t.changes = t.changes[:min(len(t.changes), shownChanges)]
	return nil
}
