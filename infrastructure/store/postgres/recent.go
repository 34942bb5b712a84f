package postgres

import (
	"context"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/store/recordstore"
)

// recentQuery returns events in the opposite order of the feed, after a position. It reads the index
// events_feed backward and sorts only the events of one transaction and key. So a page reads as many
// rows as it returns, however many events there are.
const recentQuery = `SELECT xid::text::bigint AS lsn, hash, key, id, document, stored_at AS at FROM feedbox.events
WHERE (xid, hash, id) < ($1::xid8, $2, $3) AND stored_at < $4 AND ` + live + `
ORDER BY xid DESC, hash DESC, id DESC LIMIT $5`

// recentAt is a position in that order: after an event.
type recentAt struct {
	XID  uint64 `json:"x"`
	Hash int32  `json:"h"`
	ID   string `json:"i"`
}

// openFor is how long a writer's transaction may stay open before events that it stores can be missed
// by a listing of a period. There is no index by time; the ids of transactions have the order in which
// they began, and the time of an event is that of its statement.
const openFor = time.Minute

// Recent implements recordstore.Store. The order is that of the feed: the one in which transactions
// began. The start of a period is found by bisection, with one read of the index for each of at most
// 64 steps.
func (r Records) Recent(ctx context.Context, q relay.RecentQuery, listed func(recordstore.StoredEvent) relay.RecentEvent) (page relay.RecentPage, err error) {
	const what = "list the latest events"
	at, until := recentAt{XID: 1<<63 - 1}, time.Now().Add(openFor)
	if !q.Until.IsZero() {
		until = q.Until
	}
	if q.Continuation == "" && !q.Until.IsZero() {
		if at.XID, err = r.before(ctx, until.Add(openFor)); err != nil {
			return page, err
		}
	}
	if err := relay.Resume(q.Continuation, &at); err != nil {
		return page, err
	}
	type row struct {
		recordstore.StoredEvent
		Hash int32
	}
	found, err := all[row](ctx, r.DB, what, recentQuery, at.XID, at.Hash, at.ID, until.UTC(), q.Limit)
	if err != nil {
		return page, err
	}
	for _, e := range found {
		page.Back = e.At
		if !e.At.Before(q.From) {
			page.Events = append(page.Events, listed(e.StoredEvent))
		}
	}
	if n := len(found); n == q.Limit && !page.Back.Add(openFor).Before(q.From) {
		last := found[n-1]
		page.Continuation = relay.Continue(recentAt{uint64(last.LSN), last.Hash, last.ID}) //nolint:gosec // read as one
	}
	return page, nil
}

// before returns the id of a transaction after those that stored events before t. It compares t with
// the earliest of some events, because one of a long transaction is later than its place.
func (r Records) before(ctx context.Context, t time.Time) (uint64, error) {
	var low, high uint64
	err := r.DB.row(ctx, "find the end of the feed", nil, []any{&low, &high}, `SELECT coalesce((SELECT xid FROM feedbox.events ORDER BY xid LIMIT 1), '0'),
		coalesce((SELECT xid FROM feedbox.events ORDER BY xid DESC LIMIT 1), '0')`)
	for high++; err == nil && low < high; {
		middle := low + (high-low)/2
		var earliest *time.Time
		if err = r.DB.row(ctx, "find the events of a time", nil, []any{&earliest},
			`SELECT min(stored_at) FROM (SELECT stored_at FROM feedbox.events WHERE xid >= $1::xid8 ORDER BY xid LIMIT 16) next`, middle); err != nil {
			return 0, err
		}
		if earliest == nil || !earliest.Before(t) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return high, err
}
