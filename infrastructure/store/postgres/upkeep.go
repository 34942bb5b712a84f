package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"feedbox/changefeed"
)

// Upkeep deletes expired rows while a relay runs. Several relays may run it; only one of them
// sweeps at a time.
type Upkeep struct {
	DB  *DB
	Log *slog.Logger
	// Held returns for how long the feed has been held back. Default: not checked.
	Held func() time.Duration
}

const (
	sweepPause  = time.Minute
	heldTooLong = 30 * time.Second // from which Run warns of an open transaction
)

// Run sweeps once a minute until ctx ends, which is no error. A failed sweep is logged and
// repeated.
func (u Upkeep) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepPause)
	defer tick.Stop()
	for {
		if err := u.Sweep(ctx); err != nil && ctx.Err() == nil {
			u.Log.WarnContext(ctx, "expired rows not deleted", "error", err)
		}
		if u.Held != nil {
			if held := u.Held(); held > heldTooLong {
				u.Log.WarnContext(ctx, "events held back by an open transaction", "held", held.Round(time.Second),
					"next", "feedbox doctor names it; end it, and keep the transactions of writers short")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// sweepBatch limits the rows that one transaction deletes, to keep locks and WAL small.
const sweepBatch = 5000

// alone is true if no other relay sweeps the schema $2, and excludes others until the statement has
// ended.
const alone = `(SELECT pg_try_advisory_xact_lock(hashtextextended('feedbox sweep ' || $2::text, 0)))`

// sweepEvents examines expired events in the order of their expiry, from a time on, and deletes
// those that were handled. Events that live longer have no part in it, wherever they are in the
// table. It returns the numbers of events examined and deleted, and the expiry of the last one.
const sweepEvents = `WITH old AS MATERIALIZED (
	SELECT ctid AS at, expires_at, xid <= ($4::xid8[])[width_bucket(hash, $3::int[])] AS handled FROM feedbox.events
	WHERE expires_at <= now() AND expires_at >= $5 AND ` + alone + ` ORDER BY expires_at LIMIT $1
), gone AS (
	DELETE FROM feedbox.events WHERE ctid = ANY (ARRAY(SELECT at FROM old WHERE handled)) RETURNING 1
) SELECT count(*), (SELECT count(*) FROM gone), max(expires_at) FROM old`

// sweeps are statements that each delete a limited number of other expired rows. Aggregates are compared once
// more, because a statement that waited for the writer of a row may find a living one at its ctid.
var sweeps = []string{
	`DELETE FROM feedbox.requests WHERE ctid = ANY (ARRAY(SELECT ctid FROM feedbox.requests WHERE expires_at <= now() LIMIT $1)) AND ` + alone,
	`DELETE FROM feedbox.audits WHERE ctid = ANY (ARRAY(SELECT ctid FROM feedbox.audits WHERE expires_at <= now() LIMIT $1)) AND ` + alone,
	`DELETE FROM feedbox.aggregates WHERE ctid = ANY (ARRAY(SELECT ctid FROM feedbox.aggregates WHERE expires_at <= now() AND NOT recurs LIMIT $1)) AND expires_at <= now() AND NOT recurs AND ` + alone,
	// An aggregate whose id may be used again leaves its version and sequence, but no data.
	`UPDATE feedbox.aggregates SET data = '' WHERE ctid = ANY (ARRAY(SELECT ctid FROM feedbox.aggregates WHERE expires_at <= now() AND data <> '' LIMIT $1)) AND expires_at <= now() AND ` + alone,
}

// Sweep deletes all expired rows, except events that a processor has yet to handle: see passed.
func (u Upkeep) Sweep(ctx context.Context) error {
	ctx = withLimit(ctx, upkeepTimeout)
	for _, sweep := range sweeps {
		for gone := int64(sweepBatch); gone == sweepBatch; {
			done, err := u.DB.exec(ctx, sweep, sweepBatch, u.DB.options.Schema)
			if u.DB.used(err) != nil {
				return asFault("delete expired rows", err)
			}
			gone = done.RowsAffected()
		}
	}
	return u.sweepEvents(ctx)
}

func (u Upkeep) sweepEvents(ctx context.Context) error {
	p, err := u.DB.passed(ctx)
	if err != nil {
		return err
	}
	kept, from := false, time.Unix(0, 0)
	for limit := sweepBatch; ; {
		var seen, gone int
		var last *time.Time
		err := u.DB.row(ctx, "delete expired events", nil, []any{&seen, &gone, &last}, sweepEvents, limit, u.DB.options.Schema, p.from, p.upTo, from)
		if err != nil {
			return err
		}
		kept = kept || gone < seen
		switch {
		case seen < limit:
			if kept && u.Log != nil {
				u.Log.WarnContext(ctx, "expired events kept until they are handled", "slowest", p.slowest,
					"next", "start the relay of this lease; if its processor is not used any more, delete its leases")
			}
			return nil
		case gone == 0 && last.Equal(from): // otherwise events that expire at one time and are kept would be examined for ever
			limit *= 2
		default:
			from, limit = *last, sweepBatch
		}
	}
}

// passed lists which events all processors have handled. Each part of the key space begins at a
// hash and ends at the next one. Its events are handled up to a transaction: the lowest checkpoint
// of all leases that overlap the part, whichever processor they belong to. That is 0 without a
// lease, because a processor may start yet, and while a lease is held because its checkpoint does
// not belong to this server.
type passed struct {
	from    []int32
	upTo    []uint64
	slowest string // the lease with the lowest checkpoint; "" if there is none
}

// passed reads the checkpoints of all leases.
func (db *DB) passed(ctx context.Context) (p passed, err error) {
	records, err := Leases{db}.List(ctx, "")
	if err != nil {
		return p, err
	}
	leases, err := changefeed.DecodeLeases(records)
	if err != nil {
		return p, err
	}
	positions := make([]position, len(leases))
	p.from = []int32{0}
	lowest := uint64(math.MaxUint64)
	for i, l := range leases {
		if positions[i], err = parsePosition(keySpace{l.Range}, changefeed.ReadRequest{Range: l.Range, Continuation: l.Continuation}); err != nil {
			return p, fmt.Errorf("lease %s: %w", l.ID, err)
		}
		if positions[i].hash != wholeTransaction {
			positions[i].Position--
		}
		if l.Lost != 0 || l.Foreign() { // its number means nothing here
			positions[i].Position = 0
		}
		if at := positions[i].Position; at < lowest {
			lowest, p.slowest = at, l.ID
		}
		p.from = append(p.from, positions[i].Low, positions[i].High)
	}
	slices.Sort(p.from)
	p.from = slices.Compact(p.from)
	p.upTo = make([]uint64, len(p.from))
	for i, hash := range p.from {
		first := true
		for _, l := range positions {
			if l.Low <= hash && hash < l.High && (first || l.Position < p.upTo[i]) {
				p.upTo[i], first = l.Position, false
			}
		}
	}
	return p, nil
}

// UnusedLeases are the leases of a processor of which no host has written one for a long time. Their
// checkpoints keep expired events in the table.
type UnusedLeases struct {
	Processor string // with the name of its feed, as the ids of its leases begin
	Leases    int
	Written   time.Time // zero if it is unknown
	Delete    string    // SQL that deletes them
}

// unusedAfter is far longer than the time between the renewals of a lease, at most 30 minutes.
const unusedAfter = 2 * time.Hour

// UnusedLeases returns the unused leases by processor, and the number of expired events in the table, of
// which it counts at most a million.
func (db *DB) UnusedLeases(ctx context.Context) (unused []UnusedLeases, expired int, err error) {
	records, err := Leases{db}.List(ctx, "")
	if err != nil {
		return nil, 0, err
	}
	leases, err := changefeed.DecodeLeases(records)
	if err != nil {
		return nil, 0, err
	}
	var now time.Time
	if err := db.row(ctx, "count the expired events", nil, []any{&now, &expired},
		`SELECT clock_timestamp(), count(*) FROM (SELECT FROM feedbox.events WHERE expires_at <= now() LIMIT 1000000) AS e`); err != nil {
		return nil, 0, err
	}
	byProcessor := map[string]*UnusedLeases{}
	for _, l := range leases {
		prefix, _, _ := strings.Cut(l.ID, "..")
		u := byProcessor[prefix]
		if u == nil {
			u = &UnusedLeases{Processor: prefix}
			byProcessor[prefix] = u
		}
		if u.Leases++; l.Timestamp.After(u.Written) {
			u.Written = l.Timestamp
		}
		if l.Owner != "" && l.Timestamp.IsZero() { // of another product, so the owner may be alive
			u.Written = now
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(byProcessor)) {
		if u := byProcessor[prefix]; now.Sub(u.Written) > unusedAfter {
			u.Delete = db.in("DELETE FROM feedbox.leases") + " WHERE starts_with(id, '" + strings.ReplaceAll(prefix, "'", "''") + "..')" // the prefix has the schema's name
			unused = append(unused, *u)
		}
	}
	return unused, expired, nil
}
