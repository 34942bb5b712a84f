package postgres

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// Upkeep removes what has expired, while a relay runs. Several may run at once: one of them
// sweeps at a time.
type Upkeep struct {
	DB  *DB
	Log *slog.Logger
	// Every is the time between two sweeps. Default 1 min.
	Every time.Duration
	// Held tells how long the feed has been kept from going on. Default: nobody asks.
	Held func() time.Duration
}

// heldTooLong is when an open transaction that the feed waits for is worth a warning.
const heldTooLong = 30 * time.Second

// Run sweeps until ctx ends, which is no error. A sweep that fails is told and made again.
func (u Upkeep) Run(ctx context.Context) error {
	every := u.Every
	if every <= 0 {
		every = time.Minute
	}
	tick := time.NewTicker(every)
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

// sweeps remove some of what has expired, up to their parameter. Events are removed from the
// front of the feed: those that expire first were stored first, and whole pages of the table
// become free for new ones.
var sweeps = []string{
	`DELETE FROM events e USING (SELECT hash, id, expires_at FROM events ORDER BY xid LIMIT $1) old
		WHERE e.hash = old.hash AND e.id = old.id AND old.expires_at <= now()`,
	`DELETE FROM requests WHERE ctid = ANY (ARRAY(SELECT ctid FROM requests WHERE expires_at <= now() LIMIT $1))`,
	`DELETE FROM audits WHERE ctid = ANY (ARRAY(SELECT ctid FROM audits WHERE expires_at <= now() LIMIT $1))`,
	`DELETE FROM aggregates WHERE ctid = ANY (ARRAY(SELECT ctid FROM aggregates WHERE expires_at <= now() AND NOT recurs LIMIT $1))`,
	// What may come again leaves its version and sequence, and nothing else.
	`UPDATE aggregates SET data = '' WHERE ctid = ANY (ARRAY(SELECT ctid FROM aggregates WHERE expires_at <= now() AND data <> '' LIMIT $1)) AND expires_at <= now()`,
}

// errBusy says that another one sweeps.
var errBusy = errors.New("another relay sweeps")

// Sweep removes all that has expired.
func (u Upkeep) Sweep(ctx context.Context) error {
	for _, sweep := range sweeps {
		for {
			var gone int64
			err := pgx.BeginFunc(ctx, u.DB.pool, func(tx pgx.Tx) error {
				var free bool
				err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('feedbox sweep ' || $1, 0))`, u.DB.options.Schema).Scan(&free)
				if err == nil && !free {
					err = errBusy
				}
				if err != nil {
					return err
				}
				done, err := tx.Exec(ctx, sweep, sweepBatch)
				gone = done.RowsAffected()
				return err
			})
			if errors.Is(err, errBusy) {
				return nil
			}
			if u.DB.used(err) != nil {
				return asFault("remove what has expired", err)
			}
			if gone < sweepBatch {
				break
			}
		}
	}
	return nil
}
