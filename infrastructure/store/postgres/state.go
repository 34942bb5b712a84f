package postgres

import (
	"context"
	"fmt"
	"time"
)

// State is what a server tells of itself.
type State struct {
	Server     int // as PostgreSQL numbers versions: 150004
	Schema     int // version; 0: none
	Recovering bool
	Fsync      bool
	Foreign    bool // events have ids of transactions that this server has not had
}

// Fault is what is wrong with a database, and what to do about it.
type Fault struct{ Problem, Next string }

// State asks the server.
func (db *DB) State(ctx context.Context) (s State, err error) {
	const what = "examine the database"
	err = db.row(ctx, what, nil, []any{&s.Server, &s.Recovering, &s.Fsync},
		`SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('fsync') = 'on'`)
	if err != nil || s.Server < minVersion || s.Recovering {
		return s, err
	}
	err = db.row(ctx, what, nil, []any{&s.Schema}, schemaVersion)
	switch c := code(err); {
	case c == undefinedTable, c == invalidSchema:
		return s, nil
	case err == nil && s.Schema == len(scripts):
		err = db.row(ctx, what, nil, []any{&s.Foreign}, `SELECT coalesce((SELECT xid FROM events ORDER BY xid DESC LIMIT 1) >= pg_snapshot_xmax(pg_current_snapshot()), false)`)
	}
	return s, err
}

// Faults are what relay and API do not start on.
func (s State) Faults() (wrong []Fault) {
	add := func(bad bool, problem, next string) {
		if bad {
			wrong = append(wrong, Fault{problem, next})
		}
	}
	add(s.Server < minVersion, fmt.Sprintf("the server has version %d", s.Server/10000), "take PostgreSQL 13 or later")
	add(s.Recovering, "the server is a replica that only reads", "give the address of the primary")
	add(!s.Fsync, "the server runs with fsync off and loses what it acknowledged", "set fsync = on")
	if len(wrong) == 0 {
		add(s.Schema < len(scripts), fmt.Sprintf("the schema has version %d and version %d is needed", s.Schema, len(scripts)), "set FEEDBOX_POSTGRES_MIGRATE=true and start relay or API, or run the migrations of infrastructure/store/postgres")
		add(s.Schema > len(scripts), fmt.Sprintf("the schema has version %d, this program knows version %d", s.Schema, len(scripts)), "run the newer program")
		add(s.Foreign, "the events were copied from another server, whose transactions this one has not had",
			"stop all relays, empty the table leases, run UPDATE events SET xid = pg_current_xact_id(), and start again: all events are sent once more")
	}
	return wrong
}

// Clock is the server's.
func (db *DB) Clock(ctx context.Context) (now time.Time, err error) {
	err = db.row(ctx, "read the server's clock", nil, []any{&now}, `SELECT clock_timestamp()`)
	return now, err
}

// Transaction is one that is open.
type Transaction struct {
	Age time.Duration // 0: there is none
	Who string        // whose it is
	End string        // what ends it
}

// OldestTransaction finds the oldest transaction of the server that has written something,
// prepared ones included. The feed does not go past it.
func (db *DB) OldestTransaction(ctx context.Context) (t Transaction, err error) {
	err = db.row(ctx, "look for open transactions", nil, []any{&t.Age, &t.Who, &t.End}, `SELECT * FROM (
		SELECT clock_timestamp() - xact_start AS age, format('process %s, user %s, application %s, %s', pid, usename, application_name, state), format('SELECT pg_terminate_backend(%s)', pid)
		FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
		UNION ALL
		SELECT clock_timestamp() - prepared, format('prepared as %s by %s', gid, owner), format('ROLLBACK PREPARED %L', gid) FROM pg_prepared_xacts
	) open ORDER BY age DESC NULLS LAST LIMIT 1`)
	return t, err
}

// Size is how large the table of events is, as the server's statistics have it.
type Size struct{ Rows, Dead, Bytes int64 }

// Size asks for it.
func (db *DB) Size(ctx context.Context) (s Size, err error) {
	err = db.row(ctx, "read the size of the events", nil, []any{&s.Rows, &s.Dead, &s.Bytes},
		`SELECT n_live_tup, n_dead_tup, pg_total_relation_size(relid) FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'events'`, db.options.Schema)
	return s, err
}
