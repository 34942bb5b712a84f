package postgres

import (
	"context"
	"log/slog"
	"time"
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

// alone is true if no other relay sweeps this schema, and excludes others until the statement has
// ended.
const alone = `(SELECT pg_try_advisory_xact_lock(hashtextextended('feedbox sweep ' || current_schema(), 0)))`

// sweeps are statements that each delete a limited number of expired rows. Events are deleted from
// the front of the feed: the oldest expire first, and whole pages of the table become free.
var sweeps = []string{
	`DELETE FROM events e USING (SELECT hash, id, expires_at FROM events ORDER BY xid LIMIT $1) old
		WHERE e.hash = old.hash AND e.id = old.id AND old.expires_at <= now() AND ` + alone,
	`DELETE FROM requests WHERE ctid = ANY (ARRAY(SELECT ctid FROM requests WHERE expires_at <= now() LIMIT $1)) AND ` + alone,
	`DELETE FROM audits WHERE ctid = ANY (ARRAY(SELECT ctid FROM audits WHERE expires_at <= now() LIMIT $1)) AND ` + alone,
	`DELETE FROM aggregates WHERE ctid = ANY (ARRAY(SELECT ctid FROM aggregates WHERE expires_at <= now() AND NOT recurs LIMIT $1)) AND ` + alone,
	// An aggregate whose id may be used again leaves its version and sequence, but no data.
	`UPDATE aggregates SET data = '' WHERE ctid = ANY (ARRAY(SELECT ctid FROM aggregates WHERE expires_at <= now() AND data <> '' LIMIT $1)) AND expires_at <= now() AND ` + alone,
}

// Sweep deletes all expired rows.
func (u Upkeep) Sweep(ctx context.Context) error {
	ctx = withLimit(ctx, upkeepTimeout)
	for _, sweep := range sweeps {
		for gone := int64(sweepBatch); gone == sweepBatch; {
			done, err := u.DB.pool.Exec(ctx, sweep, sweepBatch)
			if u.DB.used(err) != nil {
				return asFault("delete expired rows", err)
			}
			gone = done.RowsAffected()
		}
	}
	return nil
}
