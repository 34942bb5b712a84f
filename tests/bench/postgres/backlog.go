package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/tests/bench/postgres/handtuned"
)

// Backlog has the unsent events. All keys have the same number of events, which are committed
// in turns, each in a separate transaction.
type Backlog struct {
	Events, Keys int
	Size         int // bytes of an event's data
}

func keyOf(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

const action = "ContactNameUpdatedEvent"

// event returns the data of an event. Its id ends with its number in the backlog.
func (b Backlog) event(n int) (key, id string, sequence int, data string) {
	key, id, sequence = keyOf(n%b.Keys), fmt.Sprintf("10000000-0000-4000-9000-%012d", n), n/b.Keys+1
	data = fmt.Sprintf(`{"name":{"firstName":"Jane","lastName":"Doe"},"contactId":"%s","action":"%s","id":"%s","createdAt":"2026-11-21T12:00:00Z","aggregateVersion":%d,"sequence":%d,"schemaVersion":1,"fill":"`,
		key, action, id, sequence, sequence)
	return key, id, sequence, data + strings.Repeat("x", max(0, b.Size-len(data)-2)) + `"}`
}

// place returns the number at the end of an event's id.
func place(id string) int {
	n, err := strconv.Atoi(id[max(0, len(id)-12):])
	if err != nil {
		return -1
	}
	return n
}

// documentOf returns the stored form of an event.
func documentOf(key, id, data string) string {
	return fmt.Sprintf(`{"id":"%s","partitionKey":"%s","type":"domainEvent","data":%s}`, id, key, data)
}

// commitFeedbox commits an event as a unit of work does.
func commitFeedbox(ctx context.Context, pool *pgxpool.Pool, b Backlog, n int) error {
	key, id, _, data := b.event(n)
	_, err := pool.Exec(ctx, `INSERT INTO feedbox.events (hash, key, id, document, expires_at) VALUES ($1, $2, $3, $4, now() + interval '10 days')`, recordstore.Hash(key), key, id, documentOf(key, id, data))
	return err
}

// commitHandtuned commits an event for the hand-tuned relay.
func commitHandtuned(ctx context.Context, pool *pgxpool.Pool, b Backlog, n int) error {
	key, id, sequence, data := b.event(n)
	worker, queue := handtuned.Place(key)
	_, err := pool.Exec(ctx, `INSERT INTO outbox (worker, queue, key, sequence, event_id, action, body) VALUES ($1, $2, $3, $4, $5, $6, $7)`, worker, queue, key, sequence, id, action, data)
	return err
}

// fillFeedbox stores the backlog in the tables of the service.
func fillFeedbox(ctx context.Context, b Backlog, t turn) error {
	url := t.database
	db, err := postgres.Open(url, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url+"&search_path=feedbox&synchronous_commit=off")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `CREATE TEMP TABLE staged (n int, hash int, key text, id text, document text)`); err != nil {
		return err
	}
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"staged"}, []string{"n", "hash", "key", "id", "document"}, pgx.CopyFromSlice(b.Events, func(n int) ([]any, error) {
		key, id, _, data := b.event(n)
		return []any{n, recordstore.Hash(key), key, id, documentOf(key, id, data)}, nil
	}))
	if err != nil {
		return err
	}
	// Each in a separate transaction, as the service commits them.
	if _, err := conn.Exec(ctx, `DO $$ DECLARE s record; BEGIN
		FOR s IN SELECT * FROM staged ORDER BY n LOOP
			INSERT INTO events (hash, key, id, document, expires_at) VALUES (s.hash, s.key, s.id, s.document, now() + interval '10 days');
			COMMIT;
		END LOOP; END $$`); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `VACUUM (ANALYZE) events`)
	return err
}

// fillHandtuned creates the hand-tuned relay's table again and stores the backlog in it.
func fillHandtuned(ctx context.Context, b Backlog, t turn) error {
	url := t.database
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `DROP TABLE IF EXISTS outbox; `+handtuned.Schema); err != nil {
		return err
	}
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"outbox"}, []string{"worker", "queue", "key", "sequence", "event_id", "action", "body"}, pgx.CopyFromSlice(b.Events, func(n int) ([]any, error) {
		key, id, sequence, data := b.event(n)
		worker, queue := handtuned.Place(key)
		return []any{worker, queue, key, sequence, id, action, data}, nil
	}))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `VACUUM (ANALYZE) outbox`)
	return err
}
