package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"feedbox/application/relay"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/recordstore/parked"
)

// Parked is the parked.Records of a database. A gate is a row with its version and one JSON
// document, and each parked event is a row. It is safe for concurrent use.
type Parked struct {
	DB       *DB
	consumer bool // the tables are those of consumers
}

// ParkedOf returns the parked events of a consumer, for the option Park of a consumer kit. The database
// must have the schema (DB.Migrate).
func ParkedOf(db *DB, consumer string) (parked.Store, error) {
	return parked.OfConsumer(consumer, Parked{DB: db, consumer: true})
}

var ofConsumers = strings.NewReplacer("feedbox.gates", "feedbox.consumer_gates", "feedbox.parked", "feedbox.consumer_parked")

// in returns a statement for the tables of p. Statements have those of the relay.
func (p Parked) in(sql string) string {
	if p.consumer {
		return ofConsumers.Replace(sql)
	}
	return sql
}

const (
	gateColumns   = `key, version::text, data`
	parkedColumns = `key, id, position, action, document, lsn, sequence, reason, error, attempts, parked_at`
)

// Find implements parked.Records.
func (p Parked) Find(ctx context.Context, key string, ids []string) (g parked.Gate, events []relay.ParkedEvent, err error) {
	what := "read the gate of key " + key
	found, err := all[parked.Gate](ctx, p.DB, what, p.in(`SELECT `+gateColumns+` FROM feedbox.gates WHERE key = $1`), key)
	if err != nil || len(found) == 0 {
		return g, nil, err
	}
	if len(ids) > 0 {
		events, err = all[relay.ParkedEvent](ctx, p.DB, what, p.in(`SELECT `+parkedColumns+` FROM feedbox.parked WHERE key = $1 AND id = ANY ($2) AND skipped IS NULL`), key, ids)
	}
	return found[0], events, err
}

// Gates implements parked.Records.
func (p Parked) Gates(ctx context.Context, wanted bool) ([]parked.Gate, error) {
	return all[parked.Gate](ctx, p.DB, "list gates", p.in(`SELECT `+gateColumns+` FROM feedbox.gates WHERE wanted OR NOT $1`), wanted)
}

// First implements parked.Records. The length of a document is known without reading it, so the
// documents after maxBytes are not read.
func (p Parked) First(ctx context.Context, key string, limit, maxBytes int) ([]relay.ParkedEvent, error) {
	const first = `SELECT ` + parkedColumns + ` FROM feedbox.parked WHERE key = $1 AND skipped IS NULL ORDER BY position LIMIT $2`
	return all[relay.ParkedEvent](ctx, p.DB, "read parked events of key "+key, p.in(`SELECT `+parkedColumns+` FROM (
		SELECT *, sum(octet_length(document)) OVER (ORDER BY position) - octet_length(document) AS earlier FROM (`+first+`) AS chosen
	) AS sized WHERE earlier < $3 ORDER BY position`), key, limit, maxBytes)
}

// Skipped implements parked.Records.
func (p Parked) Skipped(ctx context.Context, key string) (skipped []relay.Skipped, err error) {
	type record struct {
		relay.ParkedEvent
		Skipped document.IntentData
	}
	found, err := all[record](ctx, p.DB, "read skipped events of key "+key,
		p.in(`SELECT `+parkedColumns+`, skipped FROM feedbox.parked WHERE key = $1 AND skipped IS NOT NULL ORDER BY abs(position)`), key)
	for _, r := range found {
		r.Position = max(r.Position, -r.Position) // see Commit
		skipped = append(skipped, relay.Skipped{Event: r.ParkedEvent, Intent: relay.Intent(r.Skipped)})
	}
	return skipped, err
}

// SkippedAmong implements parked.Records. It reads the primary key.
func (p Parked) SkippedAmong(ctx context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error) {
	skipped, keys, ids := map[relay.EventRef]bool{}, make([]string, len(events)), make([]string, len(events))
	for i, e := range events {
		keys[i], ids[i] = e.Key, e.ID
	}
	found, err := all[relay.EventRef](ctx, p.DB, "find skipped events",
		p.in(`SELECT key, id FROM unnest($1::text[], $2::text[]) AS asked (key, id) JOIN feedbox.parked USING (key, id) WHERE skipped IS NOT NULL`), keys, ids)
	for _, e := range found {
		skipped[e] = true
	}
	return skipped, err
}

// Commit implements parked.Records. If the gate's statement finds another version, the transaction
// is rolled back.
func (p Parked) Commit(ctx context.Context, c *parked.Change) (version string, err error) {
	batch, g := &pgx.Batch{}, c.Gate
	queue := func(sql string, args ...any) *pgx.QueuedQuery { return batch.Queue(p.DB.in(p.in(sql)), args...) }
	queue(`SELECT ` + durable)
	var gate *pgx.QueuedQuery
	switch {
	case c.Open:
		gate = queue(`DELETE FROM feedbox.gates WHERE key = $1 AND version::text = $2 RETURNING version::text`, g.Key, g.Version)
	case g.Version == "":
		gate = queue(`INSERT INTO feedbox.gates (key, data, wanted) VALUES ($1, $2, $3) ON CONFLICT (key) DO NOTHING RETURNING version::text`, g.Key, g.Data, c.Wanted)
	default:
		gate = queue(`UPDATE feedbox.gates SET version = DEFAULT, data = $3, wanted = $4 WHERE key = $1 AND version::text = $2 RETURNING version::text`,
			g.Key, g.Version, g.Data, c.Wanted)
	}
	gate.QueryRow(func(row pgx.Row) error { return row.Scan(&version) })
	if len(c.Put) > 0 {
		ids := make([]string, len(c.Put))
		for i := range c.Put {
			ids[i] = c.Put[i].ID
		}
		// An event that was skipped has the same position again behind another gate, so its record gets another one.
		queue(`UPDATE feedbox.parked SET position = -position WHERE key = $1 AND id = ANY ($2) AND position > 0 AND skipped IS NOT NULL`, g.Key, ids)
	}
	for i := range c.Put {
		e := &c.Put[i]
		queue(`INSERT INTO feedbox.parked (`+parkedColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			e.Key, e.ID, e.Position, document.Text(e.Action), e.Document, e.LSN, e.Sequence, document.Text(e.Reason), document.Text(e.Error), e.Attempts, e.ParkedAt)
	}
	if e := c.Replace; e != nil {
		queue(`UPDATE feedbox.parked SET document = $3 WHERE key = $1 AND id = $2 AND skipped IS NULL`, g.Key, e.ID, e.Document)
	}
	if s := c.Skipped; s != nil {
		queue(`DELETE FROM feedbox.parked WHERE key = $1 AND id = $2 AND skipped IS NOT NULL`, g.Key, s.Event.ID) // an earlier record
		queue(`UPDATE feedbox.parked SET skipped = $3 WHERE key = $1 AND id = $2 AND skipped IS NULL`, g.Key, s.Event.ID, document.IntentData(s.Intent))
	}
	if len(c.Remove) > 0 {
		queue(`DELETE FROM feedbox.parked WHERE key = $1 AND id = ANY ($2) AND skipped IS NULL`, g.Key, c.Remove)
	}
	err = p.DB.used(pgx.BeginFunc(ctx, p.DB.pool, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() }))
	if errors.Is(err, pgx.ErrNoRows) {
		return "", parked.ErrChanged
	}
	return version, asFault("change the gate of key "+g.Key, err)
}
