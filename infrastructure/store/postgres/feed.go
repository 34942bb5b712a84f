package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/recordstore"
)

// MaxRanges is the maximum number of feed ranges of a database.
const MaxRanges = 1024

// FeedOptions are the options of NewFeed. Nil and zero values are the defaults.
type FeedOptions struct {
	// Ranges is the number of feed ranges: 1, 2, 4 and so on up to MaxRanges. A higher number
	// splits the leases of a running relay; with a lower one, the leases keep their ranges.
	// Default 4.
	Ranges int
	// Hold is how long a read without events polls before it returns. Reads that are held
	// share their polls. Default: it does not poll.
	Hold time.Duration
}

// keySpace is an alias because an embedded field must not be exported.
type keySpace = recordstore.KeySpace

// Feed is the change feed of the events of a database; see the package documentation. It is safe
// for concurrent use.
type Feed struct {
	keySpace
	db   *DB
	hold time.Duration
	look func(ctx context.Context, readers ...reader) (*found, error) // poll; a simulation has its own

	tail  tail
	empty *recordstore.RangeCache[empty]

	mu      sync.Mutex // guards the fields below
	horizon uint64     // the last one that was seen
	held    time.Time  // when an open transaction stopped the horizon; zero: none does
	seen    time.Time  // when a read last saw the horizon
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
	ranges, err := recordstore.SplitKeySpace(o.Ranges, MaxRanges)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	f := &Feed{keySpace: ranges, db: db, hold: o.Hold, tail: tail{turn: make(chan struct{}, 1), pause: minPoll}, empty: recordstore.NewRangeCache[empty](2 * MaxRanges)}
	f.look = f.poll
	return f, nil
}

// Source implements changefeed.Feed.
func (f *Feed) Source(ctx context.Context) (changefeed.Source, error) {
	var database string
	err := f.db.row(ctx, "read the name of the database", nil, []any{&database}, `SELECT current_database()`)
	return changefeed.Source{Host: "postgres", Database: strings.ToLower(database), Container: f.db.options.Schema}, err
}

// Now implements changefeed.Feed. An open transaction may have a lower id than a committed one. So
// Now waits until the open transactions have ended, and then returns the position of the last
// event that they and earlier ones have stored. It waits for DBOptions.Timeout at most.
func (f *Feed) Now(ctx context.Context, _ changefeed.FeedRange) (string, error) {
	const what = "find the end of the feed"
	var began, horizon, last uint64
	ctx, cancel := context.WithTimeoutCause(ctx, f.db.options.Timeout, errHeld)
	defer cancel()
	err := f.db.row(ctx, what, nil, []any{&began}, `SELECT pg_snapshot_xmax(pg_current_snapshot())`)
	for err == nil && horizon < began {
		if err = f.db.row(ctx, what, nil, []any{&horizon, &last}, nowQuery, began); err == nil && horizon < began {
			if err = recordstore.Pause(ctx, maxPoll); err != nil {
				err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
		}
	}
	return recordstore.Token(last), asFault(what, err)
}

var errHeld = errors.New("an open transaction holds back the feed; feedbox doctor names it")

// nowQuery returns the horizon and the last event before a transaction.
const nowQuery = `SELECT pg_snapshot_xmin(pg_current_snapshot()),
	coalesce((SELECT xid FROM feedbox.events WHERE xid < $1 ORDER BY xid DESC LIMIT 1), '0'::xid8)`

// watch records when the horizon stopped.
func (f *Feed) watch(horizon, ahead uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case ahead == horizon:
		f.held = time.Time{}
	case horizon != f.horizon, f.held.IsZero(), time.Since(f.seen) > heldUnread: // it is lower after a failover
		f.held = time.Now()
	}
	f.horizon, f.seen = horizon, time.Now()
}

// heldUnread is longer than the time between two reads of a process that has a range.
const heldUnread = time.Minute

// Held returns for how long reads have seen the feed held back by an open transaction; 0 if it is not, or if
// this process has not read for a minute, for example because it has no range any more. Everything that was
// committed after that transaction began waits for it.
func (f *Feed) Held() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held.IsZero() || time.Since(f.seen) > heldUnread {
		return 0
	}
	return time.Since(f.held)
}

// position is a read request with its position: after all events of a transaction, or after those
// up to a hash. The second is for transactions that are larger than a page.
type position struct {
	recordstore.Request
	hash int32
}

const wholeTransaction = math.MaxInt32 // above all hashes

// parsePosition parses a request.
func parsePosition(space keySpace, req changefeed.ReadRequest) (p position, err error) {
	whole := req
	p.hash = wholeTransaction
	if xid, hash, within := strings.Cut(req.Continuation, "."); within {
		n, err := strconv.ParseUint(strings.TrimSuffix(hash, `"`), 10, recordstore.HashBits)
		if err != nil {
			return p, errors.Join(changefeed.ErrPermanent, fmt.Errorf("the continuation %q does not belong to this feed: %w", req.Continuation, err))
		}
		p.hash, whole.Continuation = int32(n), xid+`"` //nolint:gosec // 30 bits
	}
	p.Request, err = recordstore.ParseRequest(space, whole)
	p.Continuation = req.Continuation
	return p, err
}

// tokenWithin returns the continuation after the events of a transaction up to a hash.
func tokenWithin(xid uint64, hash int32) string { return fmt.Sprintf(`"%d.%d"`, xid, hash) }
