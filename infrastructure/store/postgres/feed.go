package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/recordstore"
)

// MaxRanges is the most feed ranges a database can be read by.
const MaxRanges = 1024

// FeedOptions are the choices of NewFeed. Nil and zero values are the defaults.
type FeedOptions struct {
	// Ranges is how many feed ranges the database is read by: 1, 2, 4 and so on up to
	// MaxRanges. More of them cut the leases of a running relay in parts; with fewer, the
	// leases stay as narrow as they are. Default 4.
	Ranges int
	// Hold is how long a read with nothing to show looks again before it says so; reads that
	// are held look together. Default: not at all.
	Hold time.Duration
}

// keySpace is embedded without being a field that others see.
type keySpace = recordstore.KeySpace

// Feed is the change feed of the events of a database; the package documentation says how
// it finds them in order. It is safe for concurrent use.
type Feed struct {
	keySpace
	db   *DB
	hold time.Duration

	tail  tail
	empty *recordstore.Memory[empty]

	mu      sync.Mutex // guards what follows
	horizon uint64     // as far as was seen
	held    time.Time  // since when it has not moved, with transactions ahead of it; zero: none
}

var (
	_ changefeed.Feed   = (*Feed)(nil)
	_ changefeed.Placer = (*Feed)(nil)
)

// NewFeed returns the feed of the events in db.
func NewFeed(db *DB, o *FeedOptions) (*Feed, error) {
	if db == nil {
		return nil, errors.New("postgres: the DB is not made by Open")
	}
	o = cmp.Or(o, &FeedOptions{})
	ranges, err := recordstore.Cut(o.Ranges, MaxRanges)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return &Feed{keySpace: ranges, db: db, hold: o.Hold, tail: tail{turn: make(chan struct{}, 1), pause: firstLook}, empty: recordstore.NewMemory[empty](2 * MaxRanges)}, nil
}

// Source implements changefeed.Feed.
func (f *Feed) Source(ctx context.Context) (changefeed.Source, error) {
	var database string
	err := f.db.row(ctx, "read the name of the database", nil, []any{&database}, `SELECT current_database()`)
	return changefeed.Source{Host: "postgres", Database: strings.ToLower(database), Container: f.db.options.Schema}, err
}

// Now implements changefeed.Feed. A transaction that is open may have an id below that of
// one that was committed, so it waits for the end of those that are open, and then gives the
// position of the last event that they and earlier ones have stored.
func (f *Feed) Now(ctx context.Context, _ changefeed.FeedRange) (string, error) {
	const what = "find the end of the feed"
	var began, horizon, last uint64
	err := f.db.row(ctx, what, nil, []any{&began}, `SELECT pg_snapshot_xmax(pg_current_snapshot())`)
	for err == nil && horizon < began {
		if err = f.db.row(ctx, what, nil, []any{&horizon, &last}, nowQuery, began); err == nil && horizon < began {
			err = recordstore.Pause(ctx, lastLook)
		}
	}
	return recordstore.Token(last), asFault(what, err)
}

// nowQuery shows the horizon, and the last event before a transaction.
const nowQuery = `SELECT pg_snapshot_xmin(pg_current_snapshot()),
	coalesce((SELECT xid FROM events WHERE xid < $1 ORDER BY xid DESC LIMIT 1), '0'::xid8)`

// watch remembers since when the horizon has not moved.
func (f *Feed) watch(horizon, ahead uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case ahead == horizon:
		f.held = time.Time{}
	case horizon > f.horizon, f.held.IsZero():
		f.held = time.Now()
	}
	f.horizon = max(f.horizon, horizon)
}

// Held is how long a transaction that is still open has kept the feed from going on, as far
// as reads have seen; 0 if none does. All that was committed after it began waits for it.
func (f *Feed) Held() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held.IsZero() {
		return 0
	}
	return time.Since(f.held)
}
