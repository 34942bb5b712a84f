package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/recordstore"
)

// readQuery returns the term of the server, the horizon, the last event below it in any range, and the events between a
// position and the horizon. FETCH ... WITH TIES separates no events of one transaction and hash. An
// event after a page that is full comes without its document; it only shows where the page ends.
// The length of a document is known without reading it. The outer bounds of all ranges are for the
// index; width_bucket is odd if a hash is within one of the ranges. We compare with "<> 0" and not
// with "= 1", because the planner expects the first of most events but the second of one in 200, for which it
// may sort all later events for each page.
const readQuery = `SELECT h.term, h.horizon, h.ahead, l.last, e.xid, e.stored_at, e.hash, e.key, e.document
FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon, pg_snapshot_xmax(pg_current_snapshot()) AS ahead, $term AS term) h
LEFT JOIN LATERAL (SELECT xid AS last FROM feedbox.events WHERE xid < h.horizon ORDER BY xid DESC LIMIT 1) l ON true
LEFT JOIN LATERAL (
	SELECT xid, stored_at, hash, key, CASE WHEN count(*) OVER before < $5 AND coalesce(sum(octet_length(document)) OVER before, 0) < $4 THEN document END AS document
	FROM (
		SELECT xid, stored_at, hash, key, document FROM feedbox.events
		WHERE xid >= $1 AND (xid, hash) > ($1, $7) AND xid < h.horizon AND hash >= $2 AND hash < $3
			AND width_bucket(hash, $6::int[]) % 2 <> 0
		ORDER BY xid, hash FETCH FIRST ($5::bigint + 1) ROWS WITH TIES
	) next
	WINDOW before AS (ORDER BY xid, hash GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) e ON true`

// pageBytes limits the documents of a page. A page exceeds it by the events of one transaction and
// hash at most. It is half of the memory that a processor uses for one range.
const pageBytes = 4 << 20

// farBehind is the lag of a position, in transactions, from which an empty page moves it. It is
// large because each move writes a lease, which is a transaction itself.
const farBehind = 1_000_000

// reader is a read in progress.
type reader struct {
	position
	empty uint64 // there are no events of its range between the position and this id
	term  string // of the server on which there are none
	atEnd bool   // the last read of its range reached the end
}

// found is the result of a poll, below the horizon at that time.
type found struct {
	events []event
	last   uint64 // the position of the last event of any range
	ahead  uint64 // above the ids of all transactions
	term   string // of the server
	cut    bool   // more events may follow these
	within bool   // and they may belong to the transaction of the last one
}

type event struct {
	hash int32
	changefeed.Item
}

// Read implements changefeed.Feed. It waits for events for up to FeedOptions.Hold.
func (f *Feed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	at, err := parsePosition(f.keySpace, req)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	page, err := f.read(ctx, &reader{position: at, empty: at.Position})
	if _, ahead := errors.AsType[*changefeed.AheadError](err); ahead {
		_ = f.db.used(nil) // the server answers
		return nil, err
	}
	if err != nil {
		return nil, asFault("read the events of range "+req.Range.String(), f.db.used(err))
	}
	return page, f.db.used(nil)
}

// read polls its range alone until it has reached the end, then together with other readers, and
// alone again when the hold is over.
func (f *Feed) read(ctx context.Context, r *reader) (*changefeed.Page, error) {
	if err := f.begin(ctx, r); err != nil {
		return nil, err
	}
	if known := f.empty.Take(r.Range); known.upTo > 0 && known.from == r.Position && r.hash == wholeTransaction {
		r.empty, r.term, r.atEnd = known.upTo, known.term, true
	}
	until := time.Now().Add(f.hold)
	for {
		var seen *found
		var err error
		if r.atEnd {
			seen, err = f.tail.poll(ctx, f, r, until)
		}
		alone := err == nil && (seen == nil || seen.cut)
		if alone {
			seen, err = f.look(ctx, *r)
		}
		if err != nil {
			return nil, err
		}
		if r.Position >= seen.ahead {
			return nil, &changefeed.AheadError{Position: int64(r.Position), End: int64(seen.ahead) - 1, Lost: true, Term: seen.term} //nolint:gosec // centuries below the bound
		}
		if r.empty > r.Position && r.term != seen.term {
			r.empty, r.atEnd = r.Position, false // another server: it repeats ids
			continue
		}
		r.term = seen.term
		page := f.pageOf(r, seen)
		if !page.CaughtUp || page.Continuation != r.Continuation || alone && (r.atEnd || f.hold == 0) {
			return page, f.withheld(ctx, r, page)
		}
		r.empty, r.atEnd = max(r.empty, seen.last), true
	}
}

// begin sets the position of a read from a time on: before the first transaction of its range that stored an
// event since then, or may still do so, at most after the last stored event. Later transactions may have
// stored events before that time, which are read too: they may not have been sent, and the position moves
// past them.
func (f *Feed) begin(ctx context.Context, r *reader) error {
	if r.Since.IsZero() {
		return nil
	}
	var first uint64
	err := f.db.queryRow(ctx, `SELECT least(pg_snapshot_xmin(pg_current_snapshot()), coalesce(
		(SELECT xid FROM feedbox.events WHERE stored_at >= $1 AND hash >= $2 AND hash < $3 ORDER BY xid LIMIT 1),
		(SELECT (xid::text::bigint + 1)::text::xid8 FROM feedbox.events ORDER BY xid DESC LIMIT 1), '1'))`, r.Since.UTC(), r.Low, r.High).Scan(&first)
	if err == nil {
		r.Position, r.empty, r.Since = first-1, first-1, time.Time{}
	}
	return err
}

// poll returns the events of the ranges of all readers, after the lowest position up to which a
// reader knows its range to be empty.
func (f *Feed) poll(ctx context.Context, readers ...reader) (*found, error) {
	after, most := readers[0].empty, readers[0].MaxItems
	for i := range readers {
		after = min(after, readers[i].empty)
	}
	hash := int32(wholeTransaction)
	if r := readers[0]; len(readers) == 1 && r.empty == r.Position {
		hash = r.hash
	}
	bounds := boundsOf(readers)
	term, err := f.db.termExpression(ctx)
	if err != nil {
		return nil, err
	}
	got, _ := f.db.query(ctx, strings.Replace(readQuery, "$term", term, 1), after, bounds[0], bounds[len(bounds)-1], pageBytes, most, bounds, hash)
	seen := &found{}
	var horizon uint64
	var last, xid *uint64
	var at *time.Time
	var in *int32
	var key *string
	var raw []byte
	_, err = pgx.ForEachRow(got, []any{&seen.term, &horizon, &seen.ahead, &last, &xid, &at, &in, &key, &raw}, func() error {
		if last != nil {
			seen.last = *last
		}
		switch n := len(seen.events); {
		case xid == nil: // there are no events of these ranges
		case raw == nil: // after the page
			if !seen.cut {
				seen.cut, seen.within = true, uint64(seen.events[n-1].LSN) == *xid //nolint:gosec // read as one
			}
		default:
			quoted, _ := json.Marshal(*key)                                                                                               // never fails
			seen.events = append(seen.events, event{*in, changefeed.Item{Raw: raw, Key: quoted, LSN: int64(*xid), Timestamp: at.Unix()}}) //nolint:gosec // centuries below the bound
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(seen.events) > most { // by events of one hash, of which the limit hides the next one
		seen.cut, seen.within = true, true
	}
	f.watch(horizon, seen.ahead)
	return seen, nil
}

// boundsOf returns the lower and upper bounds of the ranges of readers, in ascending order.
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

// pageOf returns the page of a reader from the result of a poll.
func (f *Feed) pageOf(r *reader, seen *found) *changefeed.Page {
	page := &changefeed.Page{Continuation: r.Continuation, Term: seen.term}
	end, hash := r.Position, int32(wholeTransaction)
	for _, e := range seen.events {
		xid := uint64(e.LSN) //nolint:gosec // read as one
		if after := xid > r.empty || xid == r.Position && e.hash > r.hash; after && e.hash >= r.Low && e.hash < r.High {
			page.Items, end, hash = append(page.Items, e.Item), xid, e.hash
			page.Bytes += len(e.Raw)
		}
	}
	switch {
	case len(page.Items) > 0:
		page.Continuation, page.EndLSN = recordstore.Token(end), int64(end) //nolint:gosec // see above
		if seen.cut {
			page.EndLSN = int64(seen.last) //nolint:gosec // see above
		}
		if page.Cut = seen.within; page.Cut {
			page.Continuation = tokenWithin(end, hash)
		}
	default:
		page.CaughtUp = true
		if r.Continuation == "" || r.hash != wholeTransaction || seen.last > r.Position+farBehind {
			page.Continuation = recordstore.Token(max(r.Position, seen.last))
		}
	}
	if !seen.cut {
		f.empty.Keep(r.Range, empty{end, max(end, seen.last), seen.term})
	}
	return page
}

// withheldQuery counts the transactions of a range that are committed but not below the horizon, and
// finds the oldest. Younger ones than a second are normal on a busy server.
const withheldQuery = `SELECT count(*), min(at) FROM (
	SELECT min(stored_at) AS at FROM feedbox.events
	WHERE xid >= pg_snapshot_xmin(pg_current_snapshot()) AND hash >= $1 AND hash < $2 AND stored_at < clock_timestamp() - interval '1 second'
	GROUP BY xid ORDER BY xid LIMIT 10000
) waiting`

// withheld adds the transactions that an open one holds back to a page at the end of the feed.
func (f *Feed) withheld(ctx context.Context, r *reader, page *changefeed.Page) error {
	held := f.Held()
	if !page.CaughtUp || held == 0 || held < time.Second && f.hold > 0 { // a read that is not held does not know since when
		return nil
	}
	var oldest *time.Time
	err := f.db.queryRow(ctx, withheldQuery, r.Low, r.High).Scan(&page.Withheld, &oldest)
	if oldest != nil {
		page.WithheldSince = *oldest
	}
	return err
}

// empty is a gap without events of a range, from a position up to the last event of any range. It
// must not extend to the horizon: a server that crashed reuses ids above the last commit that was
// seen, and their events would be lost.
// It is valid in one term of a server: a standby that is promoted reuses ids that its log does not
// contain, too.
type empty struct {
	from, upTo uint64
	term       string
}
