package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Event is an event that a transaction emits.
type Event struct {
	// Action names the type of the event; it is the subject of the message. 1 to 128 characters.
	Action string
	// Data encodes to a JSON object without the members that Emit adds: action, id, sequence,
	// schemaVersion, and traceparent if there is one. createdAt is added if it is missing. Nil: no
	// members. The document of the event has at most 1 MiB. Members that differ from those in case
	// only are refused, because encoding/json does not distinguish them.
	Data any
}

// Outbox stores events in transactions of the caller: an event exists if the transaction commits.
// The zero value is usable, and so are Emit and EmitSQL. It is safe for concurrent use.
type Outbox struct {
	// Schema is DBOptions.Schema. Default "feedbox".
	Schema string
	// TTL is the lifetime of the events. One that expires before it is handled is kept. Default 240 h;
	// negative is for ever.
	TTL time.Duration
	// Traceparent returns the W3C trace context of ctx, which is stored in the events; empty for none.
	// Default: none.
	Traceparent func(ctx context.Context) string
}

// Emit stores events of a key (1 to 128 characters, not the id of an aggregate) in a transaction.
// They follow all events of the key that were committed before, and each other in the order of
// the arguments. They exist only if tx commits. The role needs the rights of DB.EmitGrants.
//
// The key is locked until tx ends, so other transactions with the key wait. Emit shortly before the
// commit, and several keys in the same order everywhere; otherwise transactions can deadlock, of which
// the server aborts one. Give ctx a deadline: it ends the wait. After an error, tx can only be rolled
// back. Errors wrap that of the driver; its code is 22023 if the server refused an event.
func (o Outbox) Emit(ctx context.Context, tx pgx.Tx, key string, events ...Event) error {
	return o.emit(ctx, key, events, func(statement string, args ...any) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	})
}

// EmitSQL is Emit for package database/sql, with any driver of PostgreSQL.
func (o Outbox) EmitSQL(ctx context.Context, tx *sql.Tx, key string, events ...Event) error {
	return o.emit(ctx, key, events, func(statement string, args ...any) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}

// Emit calls Outbox.Emit with the defaults.
func Emit(ctx context.Context, tx pgx.Tx, key string, events ...Event) error {
	return Outbox{}.Emit(ctx, tx, key, events...)
}

// EmitSQL calls Outbox.EmitSQL with the defaults.
func EmitSQL(ctx context.Context, tx *sql.Tx, key string, events ...Event) error {
	return Outbox{}.EmitSQL(ctx, tx, key, events...)
}

// emitEvents takes only types that all drivers have: text and a number.
const emitEvents = `SELECT count(feedbox.emit($1::text, e->>'action', coalesce(nullif(e->'data', 'null'), '{}') || jsonb_strip_nulls(jsonb_build_object('traceparent', $3::text)),
	make_interval(secs => $4::float8))) FROM jsonb_array_elements($2::text::jsonb) AS e`

func (o Outbox) emit(ctx context.Context, key string, events []Event, exec func(statement string, args ...any) error) error {
	if len(events) == 0 {
		return nil
	}
	type event struct {
		Action string `json:"action"`
		Data   any    `json:"data"`
	}
	list := make([]event, len(events))
	for i, e := range events {
		list[i] = event(e)
	}
	text, err := json.Marshal(list)
	if err == nil {
		err = checkCase(text)
	}
	if err == nil {
		var traceparent, lifetime any
		if ttl := cmp.Or(o.TTL, 240*time.Hour); ttl > 0 {
			lifetime = ttl.Seconds()
		}
		if o.Traceparent != nil {
			if parent := o.Traceparent(ctx); parent != "" {
				traceparent = parent
			}
		}
		at := &DB{options: DBOptions{Schema: cmp.Or(o.Schema, defaultSchema)}}
		err = exec(at.in(emitEvents), key, string(text), traceparent, lifetime)
	}
	if err != nil {
		return fmt.Errorf("postgres: emit %d events of key %q: %w", len(events), key, err)
	}
	return nil
}

// emitted are the members that Emit adds.
var emitted = []string{"action", "id", "sequence", "schemaVersion", "createdAt", "traceparent"}

// checkCase refuses members whose names differ from those of emit in case only: a consumer that decodes the
// event with encoding/json would read the value of emit. Members of the same name are left to the server.
func checkCase(events []byte) error {
	var list []struct {
		Action string                     `json:"action"`
		Data   map[string]json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(events, &list) // the server refuses data that is no object
	for _, e := range list {
		for member := range e.Data {
			for _, name := range emitted {
				if member != name && strings.EqualFold(member, name) {
					return fmt.Errorf("emit %s: the member %q differs from the one that emit adds in case only; give it another name in the struct tag", e.Action, member)
				}
			}
		}
	}
	return nil
}

func emitGrants(schema, role string) string {
	return fmt.Sprintf("GRANT USAGE ON SCHEMA %[1]s TO %[2]s; GRANT EXECUTE ON FUNCTION %[1]s.emit(text, text, jsonb, interval) TO %[2]s", schema, role)
}

// EmitGrants returns the SQL that gives a role the right to emit events, and no other.
func (db *DB) EmitGrants(role string) string {
	return emitGrants(db.schema(), role)
}
