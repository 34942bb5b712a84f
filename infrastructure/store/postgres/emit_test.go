package postgres_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore"
)

// The function stores what a relay reads: the hash of package recordstore and a document of package
// document.
func TestEmittedEventIsThatOfADocument(t *testing.T) {
	t.Parallel()
	_, pool := openAt(t, database(t))
	ctx := t.Context()
	outbox := postgres.Outbox{TTL: -1, Traceparent: func(context.Context) string { return "00-1-2-01" }}
	random := rand.New(rand.NewPCG(seedOf(t), 0))
	keys := []string{"order-7", "ключ", "键", "a\"b\\c", strings.Repeat("x", 128)}
	for range 200 {
		key := make([]rune, 1+random.IntN(20))
		for i := range key {
			key[i] = rune(1 + random.IntN(0xd000))
		}
		keys = append(keys, string(key))
	}
	for _, key := range keys {
		must(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			return outbox.Emit(ctx, tx, key, postgres.Event{Action: "Paid", Data: map[string]any{"of": key, "createdAt": "then"}})
		}))
		var hash int32
		var id, raw string
		var expires *time.Time
		must(t, pool.QueryRow(ctx, `SELECT hash, id, document, expires_at FROM events WHERE key = $1`, key).Scan(&hash, &id, &raw, &expires))
		m, isEvent, err := document.EventDecoder{}.Decode([]byte(raw))
		must(t, err)
		var body struct{ Of string }
		must(t, json.Unmarshal(m.Body, &body))
		if hash != recordstore.Hash(key) || !isEvent || m.ID != id || m.Key != key || m.Action != "Paid" || m.Sequence != 1 || m.CreatedAt != "then" ||
			m.Traceparent != "00-1-2-01" || body.Of != key || expires != nil {
			t.Errorf("key %q: hash %d, expires %v, %s", key, hash, expires, raw)
		}
	}
	must(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return postgres.Emit(ctx, tx, "again", postgres.Event{Action: "A"}) }))
	var days int
	must(t, pool.QueryRow(ctx, `SELECT round(extract(epoch FROM expires_at - now()) / 86400) FROM events WHERE key = 'again'`).Scan(&days))
	if days != 10 {
		t.Errorf("an event lives %d days", days)
	}
}

func TestEmitRefusesInvalidEventsWithTheReason(t *testing.T) {
	t.Parallel()
	_, pool := openAt(t, database(t))
	const aggregate = "00000000-0000-4000-8000-000000000001"
	_, err := pool.Exec(t.Context(), `INSERT INTO aggregates VALUES ($1, 'order', 1, 1, false, false, '{}')`, aggregate)
	must(t, err)
	for says, args := range map[string][3]string{
		"emit A: the key must have 1 to 128 characters":                    {`''`, `'A'`, `'{}'`},
		"emit B: the key must have 1 to 128 characters":                    {`repeat('k', 129)`, `'B'`, `'{}'`},
		"emit C: the key must have 1 to 128 characters":                    {`NULL`, `'C'`, `'{}'`},
		"emit NULL: the action must have 1 to 128 characters":              {`'k'`, `NULL`, `'{}'`},
		"emit : the action must have 1 to 128 characters":                  {`'k'`, `''`, `'{}'`},
		"emit D: data must be a JSON object":                               {`'k'`, `'D'`, `'[]'`},
		"emit E: data must be a JSON object":                               {`'k'`, `'E'`, `NULL`},
		"emit F: data must have none of the members action, id, sequence,": {`'k'`, `'F'`, `'{"ordinal": 1}'`},
		"emit G: createdAt and traceparent must be strings":                {`'k'`, `'G'`, `'{"createdAt": 1}'`},
		"emit H: createdAt and traceparent must be strings":                {`'k'`, `'H'`, `'{"traceparent": null}'`},
		"emit I: the event has 10":                                         {`'k'`, `'I'`, `jsonb_build_object('x', repeat('y', 1048576))`},
		"emit L: the event has 12":                                         {`'k'`, `'L'`, `jsonb_build_object('x', repeat('ж', 600000))`},
		"emit J: the key is the id of an aggregate":                        {`'` + aggregate + `'`, `'J'`, `'{}'`},
		"emit K: the lifetime must be positive":                            {`'k'`, `'K'`, `'{}', interval '0'`},
	} {
		_, err := pool.Exec(t.Context(), fmt.Sprintf(`SELECT feedbox.emit(%s, %s, %s)`, args[0], args[1], args[2]))
		if reply, ok := errors.AsType[*pgconn.PgError](err); !ok || reply.Code != "22023" || !strings.HasPrefix(reply.Message, says) {
			t.Errorf("%v: %v; want %s", args, err, says)
		}
	}
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return postgres.Emit(t.Context(), tx, "k", postgres.Event{Action: "A"}, postgres.Event{Action: "L", Data: 7})
	})
	if err == nil || !strings.Contains(err.Error(), `emit 2 events of key "k"`) || !strings.Contains(err.Error(), "emit L: data must be a JSON object") {
		t.Errorf("data that is no object: %v", err)
	}
	for _, data := range []any{struct{ ID string }{"x"}, map[string]int{"CreatedAt": 1}} { // a consumer in Go would decode the member of the event
		err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return postgres.Emit(t.Context(), tx, "k", postgres.Event{Action: "A", Data: map[string]string{"createdAt": "then"}}, postgres.Event{Action: "M", Data: data})
		})
		if err == nil || !strings.Contains(err.Error(), "emit M: the member ") || !strings.Contains(err.Error(), "differs from the one that emit adds in case only") {
			t.Errorf("%v: %v", data, err)
		}
	}
	undo := errors.New("undo")
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return cmp.Or(postgres.Emit(t.Context(), tx, "k", postgres.Event{Action: "A", Data: struct{ Ordinal, AggregateVersion int }{1, 2}}), undo)
	})
	if !errors.Is(err, undo) {
		t.Errorf("members that nothing adds: %v", err)
	}
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return postgres.Emit(t.Context(), tx, "k", postgres.Event{Action: "A", Data: make(chan int)})
	})
	if _, ok := errors.AsType[*json.UnsupportedTypeError](err); !ok {
		t.Errorf("data that cannot be encoded: %v", err)
	}
	var rows int
	must(t, pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM keys)`).Scan(&rows))
	if rows != 0 {
		t.Errorf("%d rows of refused events", rows)
	}
}

// A role with EmitGrants can emit and nothing else, and its own tables do not mislead the function.
func TestRoleThatEmitsHasNoOtherRight(t *testing.T) {
	t.Parallel()
	url := database(t)
	owner, pool := openAt(t, url)
	createRoles(t, pool, "emitter")
	emitter, err := pgxpool.New(t.Context(), strings.Replace(url, "feedbox@", "emitter@", 1))
	must(t, err)
	t.Cleanup(emitter.Close)
	emit := func() error {
		return pgx.BeginFunc(t.Context(), emitter, func(tx pgx.Tx) error {
			for _, mislead := range []string{
				`CREATE TEMP TABLE IF NOT EXISTS events (LIKE pg_class)`, `CREATE TEMP TABLE IF NOT EXISTS keys (key text)`,
				`CREATE OR REPLACE FUNCTION pg_temp.hash(text) RETURNS integer LANGUAGE sql AS 'SELECT -1'`,
				`SET LOCAL search_path = pg_temp, pg_catalog`,
			} {
				if _, err := tx.Exec(t.Context(), mislead); err != nil {
					return err
				}
			}
			return postgres.Emit(t.Context(), tx, "k", postgres.Event{Action: "A"})
		})
	}
	denied := func(err error) bool {
		reply, ok := errors.AsType[*pgconn.PgError](err)
		return ok && reply.Code == "42501"
	}
	if err := emit(); !denied(err) {
		t.Fatalf("without rights: %v", err)
	}
	_, err = pool.Exec(t.Context(), owner.EmitGrants("emitter"))
	must(t, err)
	must(t, emit())
	var hash int32
	must(t, pool.QueryRow(t.Context(), `SELECT hash FROM events WHERE key = 'k'`).Scan(&hash))
	if hash != recordstore.Hash("k") {
		t.Errorf("the hash is %d", hash)
	}
	for _, other := range []string{
		`SELECT FROM feedbox.events`, `SELECT FROM feedbox.keys`, `UPDATE feedbox.keys SET sequence = 0`, `INSERT INTO feedbox.events DEFAULT VALUES`,
		`DELETE FROM feedbox.leases`, `SELECT feedbox.hash('k')`, `CREATE TABLE feedbox.mine ()`,
	} {
		if _, err := emitter.Exec(t.Context(), other); !denied(err) {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// A commit that a relay can see is on disk, whatever the adopter's setting is.
func TestTransactionThatEmitsCommitsDurably(t *testing.T) {
	t.Parallel()
	_, pool := openAt(t, database(t))
	for set, want := range map[string]string{"off": "on", "local": "on", "on": "on", "remote_apply": "remote_apply"} {
		must(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `SET LOCAL synchronous_commit = `+set)
			must(t, err)
			must(t, postgres.Emit(t.Context(), tx, "k", postgres.Event{Action: "A"}))
			var now string
			must(t, tx.QueryRow(t.Context(), `SHOW synchronous_commit`).Scan(&now))
			if now != want {
				t.Errorf("synchronous_commit %s is %s after the event", set, now)
			}
			return nil
		}))
	}
}

// Ids of transactions belong to one server. A head with one of another server would hold back the
// events of its key for as long as this server needs to reach it.
func TestHeadsCopiedFromAnotherServerDoNotHoldBackEvents(t *testing.T) {
	schema, options := newSchema(t)
	options.Schema += ` odd "name"`
	db, err := postgres.Open(schema, options)
	must(t, err)
	t.Cleanup(db.Close)
	must(t, db.Migrate(t.Context()))
	pool, err := pgxpool.New(t.Context(), schema)
	must(t, err)
	t.Cleanup(pool.Close)
	outbox := postgres.Outbox{Schema: options.Schema}
	emit := func() {
		t.Helper()
		must(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			must(t, outbox.Emit(t.Context(), tx, "k", postgres.Event{Action: "A"}))
			return outbox.Emit(t.Context(), tx, "k", postgres.Event{Action: "B"})
		}))
	}
	emit()
	_, err = pool.Exec(t.Context(), `UPDATE `+pgx.Identifier{options.Schema, "keys"}.Sanitize()+` SET xid = '99999999999'`)
	must(t, err)
	emit()
	in := newInbox(t, db, 1)
	within(t, "four events are read", func() bool { in.read(t, 10); return in.last["k"] == 4 })
}
