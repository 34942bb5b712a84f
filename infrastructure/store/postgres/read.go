package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/recordstore"
)

// readQuery shows the horizon, the last event below it in any range, and the events of
// whole transactions that lie between a position and the horizon. FETCH ... WITH TIES cuts
// no transaction. The bounds around all ranges are for the index; width_bucket tells which
// gap between the bounds of all ranges a hash lies in. The planner expects "<> 0" of most
// events, but "= 1" of one in 200: it would then sort all that follows for each page.
const readQuery = `SELECT h.horizon, h.ahead, l.last, e.xid, e.stored_at, e.hash, e.key, e.document
FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon, pg_snapshot_xmax(pg_current_snapshot()) AS ahead) h
LEFT JOIN LATERAL (SELECT xid AS last FROM events WHERE xid < h.horizon ORDER BY xid DESC LIMIT 1) l ON true
LEFT JOIN LATERAL (
	SELECT xid, stored_at, hash, key, document FROM events
	WHERE xid > $1 AND xid < h.horizon AND hash >= $2 AND hash < $3 AND stored_at >= $4
		AND width_bucket(hash, $6::int[]) % 2 <> 0
	ORDER BY xid FETCH FIRST $5 ROWS WITH TIES
) e ON true`

// farBehind is by how many transactions a position may lie behind the last event before an
// empty page moves it: a lease is written then, which is a transaction itself.
const farBehind = 1_000_000

// reader is a read that is under way.
type reader struct {
	recordstore.Request
	empty uint64 // up to here nothing of its range follows the position
	atEnd bool   // as far as was seen when its range was read before
}

// found is what a look at the events has found, below the horizon of its moment.
type found struct {
	events []event
	last   uint64 // the last event of any range
	cut    bool   // more events may follow these
}

type event struct {
	hash int32
	changefeed.Item
}

// Read implements changefeed.Feed. A page is held until there is something to show, for up
// to FeedOptions.Hold.
func (f *Feed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	request, err := recordstore.ParseRequest(f.keySpace, req)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	page, err := f.read(ctx, &reader{Request: request, empty: request.Position})
	if err != nil {
		return nil, asFault("read the events of range "+req.Range.String(), f.db.used(err))
	}
	return page, f.db.used(nil)
}

// read looks at the range alone where it is not known to be read to its end, and after a hold
// without a result; in between it looks together with others.
func (f *Feed) read(ctx context.Context, r *reader) (*changefeed.Page, error) {
	if known := f.empty.Take(r.Range); known.upTo > 0 && known.from == r.Position {
		r.empty, r.atEnd = known.upTo, true
	}
	until := time.Now().Add(f.hold)
	for {
		var seen *found
		var err error
		if r.atEnd {
			seen, err = f.tail.look(ctx, f, r, until)
		}
		alone := err == nil && (seen == nil || seen.cut)
		if alone {
			seen, err = f.look(ctx, *r)
		}
		if err != nil {
			return nil, err
		}
		page := f.show(r, seen)
		if !page.CaughtUp || page.Continuation != r.Continuation || alone && (r.atEnd || f.hold == 0) {
			return page, nil
		}
		r.empty, r.atEnd = max(r.empty, seen.last), true
	}
}

// look finds the events behind all that readers know to be empty, of the ranges of all.
func (f *Feed) look(ctx context.Context, readers ...reader) (*found, error) {
	after, most, since := readers[0].empty, readers[0].MaxItems, readers[0].Since
	for i := range readers {
		after = min(after, readers[i].empty)
	}
	bounds := boundsOf(readers)
	got, _ := f.db.pool.Query(ctx, readQuery, after, bounds[0], bounds[len(bounds)-1], since.UTC(), most, bounds)
	seen := &found{}
	var horizon, ahead uint64
	var last, xid *uint64
	var at *time.Time
	var hash *int32
	var key *string
	var raw []byte
	_, err := pgx.ForEachRow(got, []any{&horizon, &ahead, &last, &xid, &at, &hash, &key, &raw}, func() error {
		if last != nil {
			seen.last = *last
		}
		if xid != nil { // else there is nothing of these ranges
			quoted, _ := json.Marshal(*key)                                                                                                 // never fails
			seen.events = append(seen.events, event{*hash, changefeed.Item{Raw: raw, Key: quoted, LSN: int64(*xid), Timestamp: at.Unix()}}) //nolint:gosec // centuries below the bound
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	seen.cut = len(seen.events) >= most
	f.watch(horizon, ahead)
	return seen, nil
}

// boundsOf are where the ranges of readers begin and end, in turn, in their order.
func boundsOf(readers []reader) (bounds []int32) {
	slices.SortFunc(readers, func(a, b reader) int { return cmp.Compare(a.Low, b.Low) })
	for _, r := range readers {
		if n := len(bounds); n > 0 && r.Low <= bounds[n-1] { // a lease may be read by its old and its new owner
			bounds[n-1] = max(bounds[n-1], r.High)
		} else {
			bounds = append(bounds, r.Low, r.High)
		}
	}
	return bounds
}

// show makes a page of what was found of a reader's range.
func (f *Feed) show(r *reader, seen *found) *changefeed.Page {
	page := &changefeed.Page{Continuation: r.Continuation}
	end := r.Position
	for _, e := range seen.events {
		if xid := uint64(e.LSN); xid > r.empty && e.hash >= r.Low && e.hash < r.High { //nolint:gosec // read as one
			page.Items, end = append(page.Items, e.Item), xid
			page.Bytes += len(e.Raw)
		}
	}
	switch {
	case len(page.Items) > 0:
		page.Continuation, page.EndLSN = recordstore.Token(end), int64(end) //nolint:gosec // see above
		if seen.cut {
			page.EndLSN = int64(seen.last) //nolint:gosec // see above
		}
	default:
		page.CaughtUp = true
		if r.Continuation == "" || seen.last > r.Position+farBehind {
			page.Continuation = recordstore.Token(seen.last)
		}
	}
	if !seen.cut && r.Since.IsZero() {
		f.empty.Keep(r.Range, empty{end, max(end, seen.last)})
	}
	return page
}

// empty says that nothing of a range lies between a position and the last event of any range.
// To go up to the horizon instead would lose events: a server that crashed gives ids out again,
// though none up to that of a commit that was seen.
type empty struct{ from, upTo uint64 }
