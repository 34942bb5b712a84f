package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// State describes a server and its schema.
type State struct {
	Server     int // as PostgreSQL numbers versions: 150004
	Schema     int // version; 0: none
	Compatible int // the oldest version whose programs can use the schema
	Recovering bool
	Fsync      bool
	Pooled     bool   // the address leads to a pooler
	Commit     string // the database's default of synchronous_commit, which no commit of this package uses
	Foreign    bool   // events or leases have ids of transactions of another server
	Blind      bool   // the role may not ask for the server's identity or timeline
	Barred     bool   // the role may not use the schema
}

// Fault is a problem of a database and its remedy.
type Fault struct{ Problem, Next string }

// State queries the server.
func (db *DB) State(ctx context.Context) (s State, err error) {
	const what = "examine the database"
	err = db.row(ctx, what, nil, []any{&s.Server, &s.Recovering, &s.Fsync, &s.Commit},
		`SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('fsync') = 'on', current_setting('synchronous_commit')`)
	s.Pooled = route(db.routes.route.Load()) == pooled
	if err != nil || s.Server < minVersion || s.Recovering {
		return s, err
	}
	err = db.row(ctx, what, nil, []any{&s.Schema, &s.Compatible}, schemaVersion)
	switch c := code(err); {
	case c == undefinedTable, c == invalidSchema, c == classPrivilege: // or the role may not look into the schema
		err = db.row(ctx, what, nil, []any{&s.Barred}, `SELECT NOT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1`, db.options.Schema)
	case err == nil && s.Schema >= len(scripts) && s.Compatible <= len(scripts):
		s.Foreign, s.Blind, err = db.foreign(ctx, what)
	}
	return s, err
}

// foreign reports whether events or leases have ids that this server has not given out, and whether
// its term is unknown. A role may have no right to read leases, as one of an API.
func (db *DB) foreign(ctx context.Context, what string) (foreign, blind bool, err error) {
	for _, ids := range []string{
		`SELECT xid FROM feedbox.events ORDER BY xid DESC LIMIT 1`,
		`SELECT substring(body FROM '(?i)"continuation[a-z]*": *"[\\"]*([0-9]{1,18})')::xid8 FROM feedbox.leases ORDER BY 1 DESC NULLS LAST LIMIT 1`,
	} {
		var ahead bool
		err = db.row(ctx, what, nil, []any{&ahead}, `SELECT coalesce((`+ids+`) >= pg_snapshot_xmax(pg_current_snapshot()), false)`)
		if foreign = foreign || ahead; err != nil && code(err) != classPrivilege {
			return foreign, false, err
		}
	}
	term, err := db.termExpression(ctx)
	return foreign, term != terms[0], err
}

// Faults returns the problems with which relay and API do not start.
func (s State) Faults() (wrong []Fault) {
	add := func(bad bool, problem, next string) {
		if bad {
			wrong = append(wrong, Fault{problem, next})
		}
	}
	add(s.Server < minVersion, fmt.Sprintf("the server has version %d", s.Server/10000), "use PostgreSQL 13 or later")
	add(s.Recovering, "the server is a read-only replica", "use the address of the primary")
	add(!s.Fsync, "the server runs with fsync off and may lose acknowledged commits", "set fsync = on")
	add(s.Barred, "the user may not use the schema", "run the script of feedbox migrate --print-roles")
	if len(wrong) == 0 {
		add(s.Schema < len(scripts), fmt.Sprintf("the schema has version %d and version %d is needed", s.Schema, len(scripts)), "run feedbox migrate with the role that owns the schema")
		add(s.Compatible > len(scripts), fmt.Sprintf("the schema has version %d, and programs need version %d or later; this one has version %d", s.Schema, s.Compatible, len(scripts)), "run the newer program")
		add(s.Foreign, "events or leases were copied from another server and have its transaction ids",
			"stop all relays and all programs that store events, empty the table leases, run "+renumber+", and start again: all events are sent once more")
	}
	return wrong
}

// renumber gives events that were copied from another server ids of this one. Each commit of a key gets its own,
// in their order, because the relay sorts events of one id by the place in their commit. The ids are those of
// subtransactions, so no other transaction ever gets them.
const renumber = `DO $$ DECLARE first bigint := pg_current_xact_id()::text; BEGIN ` +
	`CREATE TEMP TABLE taken (n bigint) ON COMMIT DROP; ` +
	`FOR n IN 1..coalesce((SELECT max(ids) FROM (SELECT count(DISTINCT xid) AS ids FROM events GROUP BY key) keys), 0) LOOP ` +
	`BEGIN INSERT INTO taken VALUES (n); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; ` +
	`UPDATE events e SET xid = (first + place)::text::xid8 FROM ` +
	`(SELECT hash, key, id, dense_rank() OVER (PARTITION BY key ORDER BY xid) AS place FROM events) p ` +
	`WHERE e.hash = p.hash AND e.key = p.key AND e.id = p.id; END $$`

// terms are expressions for the term of a server: its identity, and after a colon the timeline of
// its log. All roles may call the functions, unless that was revoked; then a part is unknown. We do
// not use the timeline of pg_control_checkpoint, because that is the one of before the promotion
// until the first checkpoint after it. On a replica the expressions fail. So nothing is read from
// a connection that was opened before the promotion, and was not noticed.
var terms = []string{
	`(SELECT system_identifier FROM pg_control_system()) || ':' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)`,
	`':' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)`,
	`(SELECT system_identifier FROM pg_control_system()) || ':'`,
	`''`,
}

// termExpression returns the first of terms that the role may use. It costs about 10 µs a use.
func (db *DB) termExpression(ctx context.Context) (string, error) {
	if known := db.term.Load(); known != nil {
		return *known, nil
	}
	for _, expression := range terms {
		var term string
		switch err := db.queryRow(ctx, `SELECT `+expression).Scan(&term); code(err) {
		case classPrivilege, notSupported, undefinedFunction:
		default:
			if err == nil {
				db.term.Store(&expression)
			}
			return expression, asFault("identify the server", db.used(err))
		}
	}
	return "", errors.New("unreachable: the last expression is a constant")
}

// Clock returns the time of the server.
func (db *DB) Clock(ctx context.Context) (now time.Time, err error) {
	err = db.row(ctx, "read the server's clock", nil, []any{&now}, `SELECT clock_timestamp()`)
	return now, err
}

// Transaction is an open transaction.
type Transaction struct {
	Who string // process, user and application; "" if there is no transaction
	End string // SQL that ends it
	Age time.Duration
	// AtLeast means that Age is a lower bound, because the role has no pg_monitor and the transaction
	// is of another role. 0 is unknown then.
	AtLeast bool
}

// OldestTransaction returns the open transaction of the server that has the lowest id, including
// prepared ones. It holds back the feed. The first event that it holds back gives a lower bound of
// its age.
func (db *DB) OldestTransaction(ctx context.Context) (t Transaction, err error) {
	err = db.row(ctx, "list open transactions", nil, []any{&t.Who, &t.End, &t.Age, &t.AtLeast}, `SELECT who, stop,
		coalesce(clock_timestamp() - coalesce(began, (SELECT stored_at FROM feedbox.events WHERE xid >= pg_snapshot_xmin(pg_current_snapshot()) ORDER BY xid LIMIT 1)), interval '0'), began IS NULL
	FROM (
		SELECT backend_xid AS xid, xact_start AS began, format('SELECT pg_terminate_backend(%s)', pid) AS stop,
			concat_ws(', ', 'process ' || pid, 'user ' || usename, 'application ' || nullif(application_name, ''), state) AS who
		FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
		UNION ALL
		SELECT transaction, prepared, format('ROLLBACK PREPARED %L', gid), format('prepared as %s by %s', gid, owner) FROM pg_prepared_xacts
	) open ORDER BY age(xid) DESC LIMIT 1`)
	return t, err
}

// Size is the size of the table of events in the server's statistics.
type Size struct{ Rows, Dead, Bytes int64 }

// Size queries the size of the table of events.
func (db *DB) Size(ctx context.Context) (s Size, err error) {
	err = db.row(ctx, "read the size of the events", nil, []any{&s.Rows, &s.Dead, &s.Bytes},
		`SELECT n_live_tup, n_dead_tup, pg_total_relation_size(relid) FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'events'`, db.options.Schema)
	return s, err
}
