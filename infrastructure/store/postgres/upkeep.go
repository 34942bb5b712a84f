package postgres

import (
	"context"
	"log/slog"
	"time"
)

// Upkeep removes what has expired, while a relay runs. Several may run at once: one of them
// sweeps at a time.
type Upkeep struct {
	DB  *DB
	Log *slog.Logger
	// Held tells how long the feed has been kept from going on. Default: nobody asks.
	Held func() time.Duration
}

const (
	sweepPause  = time.Minute
	heldTooLong = 30 * time.Second // when an open transaction that the feed waits for is worth a warning
)

// Run sweeps once a minute until ctx ends, which is no error. A sweep that fails is told and made
// again.
func (u Upkeep) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepPause)
	defer tick.Stop()
	for {
		if err := u.Sweep(ctx); err != nil && ctx.Err() == nil {
			u.Log.WarnContext(ctx, "what has expired is not removed", "error", err)
		}
		if u.Held != nil {
			if held := u.Held(); held > heldTooLong {
				u.Log.WarnContext(ctx, "an open transaction of the database holds the events back", "held", held.Round(time.Second),
					"next", "feedbox doctor names it; end it, and have writers keep their transactions short")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// sweepBatch bounds the rows that one transaction removes: locks and WAL stay small.
const sweepBatch = 5000

// alone holds while no other relay sweeps this schema, and keeps others from it until the
// statement that asks for it has ended.
const alone = `(SELECT pg_try_advisory_xact_lock(hashtextextended('feedbox sweep ' || current_schema(), 0)))`

// sweeps remove some of what has expired, up to their parameter. Events are removed from the
// front of the feed: those that expire first were stored first, and whole pages of the table
// become free for new ones.
var sweeps = []string{
	`DELETE FROM events e USING (SELECT hash, id, expires_at FROM events ORDER BY xid LIMIT $1) old
		WHERE e.hash = old.hash AND e.id = old.id AND old.expires_at <= now() AND ` + alone,
	`DELETE FROM requests WHERE ctid = ANY (ARRAY(SELECT ctid FROM requests WHERE expires_at <= now() LIMIT $1)) AND ` + alone,
	`DELETE FROM audits WHERE ctid = ANY (ARRAY(SELECT ctid FROM audits WHERE expires_at <= now() LIMIT $1)) AND ` + alone,
	`DELETE FROM aggregates WHERE ctid = ANY (ARRAY(SELECT ctid FROM aggregates WHERE expires_at <= now() AND NOT recurs LIMIT $1)) AND ` + alone,
	// What may come again leaves its version and sequence, and nothing else.
	`UPDATE aggregates SET data = '' WHERE ctid = ANY (ARRAY(SELECT ctid FROM aggregates WHERE expires_at <= now() AND data <> '' LIMIT $1)) AND expires_at <= now() AND ` + alone,
}

// Sweep removes all that has expired.
func (u Upkeep) Sweep(ctx context.Context) error {
	for _, sweep := range sweeps {
		for gone := int64(sweepBatch); gone == sweepBatch; {
			done, err := u.DB.pool.Exec(ctx, sweep, sweepBatch)
			if u.DB.used(err) != nil {
				return asFault("remove what has expired", err)
			}
			gone = done.RowsAffected()
		}
	}
	return nil
}
