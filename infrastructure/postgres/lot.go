package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Lot keeps parked events: the gate of a key is a row, and so is each event behind it.
// Every change of a key is one transaction that holds the row of its gate. It implements
// relay.ParkedStore, relay.DrainStore and what an operator needs. It is safe for concurrent
// use.
type Lot struct{ DB *DB }

var (
	_ relay.ParkedStore = Lot{}
	_ relay.DrainStore  = Lot{}
)

// Park implements relay.ParkedStore.
func (l Lot) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (relay.Parking, error) {
	var done relay.Parking
	err := l.transact(ctx, func(tx pgx.Tx) error {
		done = relay.Parking{}
		g, err := lockGate(ctx, tx, key)
		if fault.Is(err, fault.NotFound) {
			if closing == nil {
				return relay.ErrGateOpen
			}
			g, err = closeGate(ctx, tx, relay.NewGate(key, *closing))
		}
		if err != nil {
			return err
		}
		if done, err = admit(ctx, tx, &g, events); err != nil {
			return err
		}
		_, err = putGate(ctx, tx, g)
		return err
	})
	return done, l.failed("park events of key "+key, err)
}

// closeGate makes the row of a gate, or finds the one that another has made meanwhile.
func closeGate(ctx context.Context, tx pgx.Tx, g relay.Gate) (relay.Gate, error) {
	closing, err := json.Marshal(closingData(g.Closing))
	if err != nil {
		return g, err
	}
	made, err := tx.Exec(ctx, `INSERT INTO gates (key, closing, wanted, progress_sequence, progress_lsn, events, last, sequence, attempts, error)
		VALUES ($1, $2, $3, $4, $5, 0, 0, 0, 0, '') ON CONFLICT (key) DO NOTHING`, g.Key, string(closing), g.Wanted() != nil, g.Progress.Sequence, g.Progress.LSN)
	if err != nil || made.RowsAffected() == 1 {
		return g, err
	}
	return lockGate(ctx, tx, g.Key)
}

// admit puts events behind the gate that is locked.
func admit(ctx context.Context, tx pgx.Tx, g *relay.Gate, events []relay.ParkedEvent) (done relay.Parking, err error) {
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = events[i].ID
	}
	rows, _ := tx.Query(ctx, `SELECT `+parkedColumns+` FROM parked WHERE key = $1 AND id = ANY ($2) AND skipped IS NULL`, g.Key, ids)
	before, err := pgx.CollectRows(rows, scanParked)
	if err != nil {
		return done, err
	}
	there := make(map[string]relay.ParkedEvent, len(before))
	for _, e := range before {
		there[e.ID] = e
	}
	batch := &pgx.Batch{}
	for _, e := range events {
		if have, known := there[e.ID]; known {
			done.Before = append(done.Before, have)
			continue
		}
		if e.Key = g.Key; !g.Admit(&e) {
			continue
		}
		there[e.ID] = e
		done.Parked = append(done.Parked, e)
		batch.Queue(`INSERT INTO parked (`+parkedColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			e.Key, e.ID, e.Position, e.Action, e.Document, e.LSN, e.Sequence, e.Reason, e.Error, e.Attempts, e.ParkedAt)
	}
	return done, tx.SendBatch(ctx, batch).Close()
}

// Closed implements relay.ParkedStore.
func (l Lot) Closed(ctx context.Context) ([]string, error) {
	rows, _ := l.DB.pool.Query(ctx, `SELECT key FROM gates`)
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return keys, l.failed("list parked keys", err)
}

// Intents implements relay.DrainStore.
func (l Lot) Intents(ctx context.Context) ([]relay.Gate, error) {
	return l.gates(ctx, `SELECT `+gateColumns+` FROM gates WHERE wanted`)
}

// Gates returns all closed gates, the one closed first in front.
func (l Lot) Gates(ctx context.Context) ([]relay.Gate, error) {
	return l.gates(ctx, `SELECT `+gateColumns+` FROM gates ORDER BY closing->>'at', key`)
}

func (l Lot) gates(ctx context.Context, query string) ([]relay.Gate, error) {
	rows, _ := l.DB.pool.Query(ctx, query)
	gates, err := pgx.CollectRows(rows, scanGate)
	return gates, l.failed("list gates", err)
}

// Gate implements relay.DrainStore.
func (l Lot) Gate(ctx context.Context, key string) (relay.Gate, error) {
	rows, _ := l.DB.pool.Query(ctx, `SELECT `+gateColumns+` FROM gates WHERE key = $1`, key)
	g, err := pgx.CollectExactlyOneRow(rows, scanGate)
	return g, l.failed("read the gate of key "+key, notFound(key, err))
}

// SetIntent notes on the gate of key what an operator wants, in place of what may stand
// there. NotFound if the gate is open.
func (l Lot) SetIntent(ctx context.Context, key string, intent relay.Intent) (g relay.Gate, err error) {
	err = l.transact(ctx, func(tx pgx.Tx) error {
		if g, err = lockGate(ctx, tx, key); err != nil {
			return err
		}
		g.Intent = &intent
		g, err = putGate(ctx, tx, g)
		return err
	})
	return g, l.failed("note what is wanted of key "+key, err)
}

// First implements relay.DrainStore.
func (l Lot) First(ctx context.Context, key string, limit int) ([]relay.ParkedEvent, error) {
	rows, _ := l.DB.pool.Query(ctx, `SELECT `+parkedColumns+` FROM parked WHERE key = $1 AND skipped IS NULL ORDER BY position LIMIT $2`, key, limit)
	events, err := pgx.CollectRows(rows, scanParked)
	return events, l.failed("read parked events of key "+key, err)
}

// Skipped returns the records of the events of key that were left out, in their order.
func (l Lot) Skipped(ctx context.Context, key string) ([]relay.Skipped, error) {
	rows, _ := l.DB.pool.Query(ctx, `SELECT `+parkedColumns+`, skipped FROM parked WHERE key = $1 AND skipped IS NOT NULL ORDER BY position`, key)
	skipped, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s relay.Skipped, err error) {
		var intent []byte
		if err = row.Scan(append(parkedFields(&s.Event), &intent)...); err != nil {
			return s, err
		}
		wanted, err := decodeIntent(intent)
		if wanted != nil {
			s.Intent = *wanted
		}
		s.Event.ParkedAt = s.Event.ParkedAt.UTC()
		return s, err
	})
	return skipped, l.failed("read skipped events of key "+key, err)
}

// Update implements relay.DrainStore.
func (l Lot) Update(ctx context.Context, g relay.Gate) (stored relay.Gate, err error) {
	err = l.transact(ctx, func(tx pgx.Tx) error {
		if err := matchGate(ctx, tx, &g); err != nil {
			return err
		}
		stored, err = putGate(ctx, tx, g)
		return err
	})
	return stored, l.failed("update the gate of key "+g.Key, err)
}

// Remove implements relay.DrainStore.
func (l Lot) Remove(ctx context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (stored relay.Gate, err error) {
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = events[i].ID
	}
	err = l.transact(ctx, func(tx pgx.Tx) error {
		if err := matchGate(ctx, tx, &g); err != nil {
			return err
		}
		if skipped != nil {
			intent, err := encodeIntent(&skipped.Intent)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE parked SET skipped = $3 WHERE key = $1 AND id = $2 AND skipped IS NULL`, g.Key, skipped.Event.ID, intent); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `DELETE FROM parked WHERE key = $1 AND id = ANY ($2) AND skipped IS NULL`, g.Key, ids); err != nil {
			return err
		}
		released := g
		released.Release(events)
		stored, err = putGate(ctx, tx, released)
		return err
	})
	return stored, l.failed("remove parked events of key "+g.Key, err)
}

// Open implements relay.DrainStore.
func (l Lot) Open(ctx context.Context, g relay.Gate) error {
	return l.failed("open the gate of key "+g.Key, l.transact(ctx, func(tx pgx.Tx) error {
		if err := matchGate(ctx, tx, &g); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM gates WHERE key = $1`, g.Key)
		return err
	}))
}

func (l Lot) transact(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, l.DB.pool, do)
}

// failed makes a fault of a failure.
func (l Lot) failed(what string, err error) error {
	if errors.Is(err, relay.ErrGateOpen) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.PreconditionFailed) {
		_ = l.DB.used(nil)
		return err
	}
	return asFault(what, l.DB.used(err))
}

func notFound(key string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.Missing("gate of key", key)
	}
	return err
}

// lockGate returns the gate of key and keeps others from changing it until tx ends.
func lockGate(ctx context.Context, tx pgx.Tx, key string) (relay.Gate, error) {
	rows, _ := tx.Query(ctx, `SELECT `+gateColumns+` FROM gates WHERE key = $1 FOR UPDATE`, key)
	g, err := pgx.CollectExactlyOneRow(rows, scanGate)
	return g, notFound(key, err)
}

// matchGate locks the gate and refuses another version of it.
func matchGate(ctx context.Context, tx pgx.Tx, g *relay.Gate) error {
	stored, err := lockGate(ctx, tx, g.Key)
	if err == nil && stored.Version != g.Version {
		err = fault.New(fault.PreconditionFailed, "", fmt.Sprintf("the gate of key %s was changed by somebody else", g.Key))
	}
	return err
}
