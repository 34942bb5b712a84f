package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/rows"
)

// MaxRanges is the most feed ranges a database can be read by.
const MaxRanges = 1024

// FeedOptions are the choices of NewFeed. Nil and zero values are the defaults.
type FeedOptions struct {
	// Ranges is how many feed ranges the database is read by: 1, 2, 4 and so on up to
	// MaxRanges. More of them cut the leases of a running relay in parts; with fewer, the
	// leases stay as narrow as they are. Default 4.
	Ranges int
	// Hold is how long a read with nothing to show looks again before it says so. Default:
	// not at all.
	Hold time.Duration
}

// Feed is the change feed of the events of a database; the package documentation says how
// it finds them in order. It is safe for concurrent use.
type Feed struct {
	db     *DB
	ranges []changefeed.FeedRange
	hold   time.Duration

	mu      sync.Mutex // guards what follows
	scanned map[changefeed.FeedRange]scan
	held    holding
}

// scan says that nothing of a range lies between a position and the event of a transaction.
type scan struct{ position, upTo uint64 }

var (
	_ changefeed.Feed   = (*Feed)(nil)
	_ changefeed.Placer = (*Feed)(nil)
)

// NewFeed returns the feed of the events in db.
func NewFeed(db *DB, o *FeedOptions) (*Feed, error) {
	var given FeedOptions
	if o != nil {
		given = *o
	}
	if db == nil {
		return nil, errNotMade
	}
	ranges, err := rows.Ranges(given.Ranges, MaxRanges)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return &Feed{db: db, ranges: ranges, hold: given.Hold, scanned: map[changefeed.FeedRange]scan{}}, nil
}

// Source implements changefeed.Feed.
func (f *Feed) Source(ctx context.Context) (changefeed.Source, error) {
	database, err := f.db.identity(ctx)
	return changefeed.Source{Host: "postgres", Database: database, Container: f.db.options.Schema}, err
}

// Ranges implements changefeed.Feed.
func (f *Feed) Ranges(context.Context) ([]changefeed.FeedRange, error) { return f.ranges, nil }

// Place implements changefeed.Placer.
func (f *Feed) Place(key string) (string, error) {
	return rows.Place(key), nil
}

// The pauses between two looks of a read that is held.
const (
	firstLook = time.Millisecond
	lastLook  = 50 * time.Millisecond
)

// Now implements changefeed.Feed. A transaction that is open may have an id below that of
// one that was committed, so it waits for the end of those that are open, and then gives the
// position of the last event that they and earlier ones have stored.
func (f *Feed) Now(ctx context.Context, _ changefeed.FeedRange) (string, error) {
	const what = "find the end of the feed"
	var began, horizon, last uint64
	err := f.db.used(f.db.pool.QueryRow(ctx, `SELECT pg_snapshot_xmax(pg_current_snapshot())`).Scan(&began))
	for err == nil {
		err = f.db.used(f.db.pool.QueryRow(ctx, nowQuery, began).Scan(&horizon, &last))
		if err == nil && horizon >= began {
			return rows.Token(last), nil
		}
		if err == nil {
			err = rows.Pause(ctx, lastLook)
		}
	}
	return "", asFault(what, err)
}

// nowQuery shows the horizon, and the last event before a transaction.
const nowQuery = `SELECT pg_snapshot_xmin(pg_current_snapshot()),
	coalesce((SELECT xid FROM events WHERE xid < $1 ORDER BY xid DESC LIMIT 1), '0'::xid8)`

// readQuery shows the horizon, the last event below it in any range, and the events of
// whole transactions that lie between a position and the horizon. FETCH ... WITH TIES cuts
// no transaction.
const readQuery = `SELECT h.horizon, h.ahead, l.last, e.xid, e.stored_at, e.key, e.document
FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon, pg_snapshot_xmax(pg_current_snapshot()) AS ahead) h
LEFT JOIN LATERAL (SELECT xid AS last FROM events WHERE xid < h.horizon ORDER BY xid DESC LIMIT 1) l ON true
LEFT JOIN LATERAL (
	SELECT xid, stored_at, key, document FROM events
	WHERE xid > $1 AND xid < h.horizon AND hash >= $2 AND hash < $3 AND stored_at >= $4
	ORDER BY xid FETCH FIRST $5 ROWS WITH TIES
) e ON true`

// pageSize is how many events a page has where nobody says.
const pageSize = 100

// Read implements changefeed.Feed. A page is held until there is something to show, for up
// to FeedOptions.Hold.
func (f *Feed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	from, to, err := rows.Hashes(req.Range, f.ranges)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	position, err := rows.ParseToken(req.Continuation)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if req.MaxItems <= 0 {
		req.MaxItems = pageSize
	}
	until := time.Now().Add(f.hold)
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		page, err := f.look(ctx, req, from, to, position)
		if err != nil {
			return nil, asFault("read the events of range "+req.Range.String(), f.db.used(err))
		}
		if !page.CaughtUp || page.Continuation != req.Continuation || time.Now().Add(wait).After(until) {
			return page, f.db.used(nil)
		}
		if err := rows.Pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// farBehind is by how many transactions a position may lie behind the last event before an
// empty page moves it: a lease is written then, which is a transaction itself.
const farBehind = 1_000_000

// look reads once.
func (f *Feed) look(ctx context.Context, req changefeed.ReadRequest, from, to int32, position uint64) (*changefeed.Page, error) {
	since := req.Since
	if req.Continuation != "" {
		since = time.Time{}
	}
	found, err := f.db.pool.Query(ctx, readQuery, f.knownEmpty(req.Range, position), from, to, since.UTC(), req.MaxItems)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	page := &changefeed.Page{}
	var horizon, ahead, last uint64
	for found.Next() {
		var stored, xid *uint64
		var at *time.Time
		var key *string
		var raw []byte
		if err := found.Scan(&horizon, &ahead, &stored, &xid, &at, &key, &raw); err != nil {
			return nil, err
		}
		if stored != nil {
			last = *stored
		}
		if xid == nil {
			continue // nothing of this range
		}
		quoted, err := json.Marshal(*key)
		if err != nil {
			return nil, err
		}
		page.Items = append(page.Items, changefeed.Item{Raw: raw, Key: quoted, LSN: int64(*xid), Timestamp: at.Unix()}) //nolint:gosec // centuries below the bound
		page.Bytes += len(raw)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	if len(page.Items) == 0 {
		f.nothingUpTo(req.Range, position, last)
	}
	f.watch(horizon, ahead)
	page.Continuation = req.Continuation
	switch n := len(page.Items); {
	case n > 0:
		end := page.Items[n-1].LSN
		page.Continuation, page.EndLSN = rows.Token(uint64(end)), end //nolint:gosec // read as one
		if n >= req.MaxItems {
			page.EndLSN = int64(last) //nolint:gosec // see above
		}
	default:
		page.CaughtUp = true
		if req.Continuation == "" || last > position+farBehind {
			page.Continuation = rows.Token(last)
		}
	}
	return page, nil
}

// knownEmpty returns from where a range has to be searched for what follows position.
func (f *Feed) knownEmpty(r changefeed.FeedRange, position uint64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.scanned[r]; s.position == position && s.upTo > position {
		return s.upTo
	}
	return position
}

// nothingUpTo remembers that nothing of a range lies between its position and the last event
// of any range. To remember the horizon instead would lose events: a server that crashed
// gives ids out again, though none up to that of a commit that was seen.
func (f *Feed) nothingUpTo(r changefeed.FeedRange, position, last uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.scanned) > 2*MaxRanges {
		clear(f.scanned)
	}
	f.scanned[r] = scan{position, max(position, last)}
}
