package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"

	"feedbox/domain/fault"
)

//go:embed migrations/*.sql
var migrations embed.FS

// minVersion is the oldest server whose snapshots can be asked for their xmin as xid8.
const minVersion = 130000

// scripts are the migrations in order; the first makes version 1.
func scripts() ([]string, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range names {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			return nil, err
		}
		all = append(all, string(text))
	}
	return all, nil
}

// Migrate creates the schema or brings it to this version. Several may do it at once.
func (db *DB) Migrate(ctx context.Context) error {
	const what = "migrate the schema"
	all, err := scripts()
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		schema := pgx.Identifier{db.options.Schema}.Sanitize()
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('feedbox ' || $1, 0))`, db.options.Schema); err != nil {
			return err
		}
		var exists bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, schema+".schema_version").Scan(&exists); err != nil {
			return err
		}
		if !exists {
			if _, err := tx.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+schema); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `CREATE TABLE `+schema+`.schema_version (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`); err != nil {
				return err
			}
		}
		version, err := schemaVersion(ctx, tx)
		if err != nil {
			return err
		}
		for n := version; n < len(all); n++ {
			if _, err := tx.Exec(ctx, all[n]); err != nil {
				return fmt.Errorf("version %d: %w", n+1, err)
			}
			if _, err := tx.Exec(ctx, `INSERT INTO schema_version (version) VALUES ($1)`, n+1); err != nil {
				return err
			}
		}
		return nil
	})
	return asFault(what, db.used(err))
}

func schemaVersion(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (version int, err error) {
	err = q.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM schema_version`).Scan(&version)
	return version, err
}

// Verify refuses a database that the promises do not hold on: a server that is too old, is
// a replica or loses what it acknowledged, a schema of another version, events that were
// copied from another server. Faults Unavailable say that it did not answer.
func (db *DB) Verify(ctx context.Context) error {
	s, err := db.state(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for _, wrong := range s.faults() {
		faults = append(faults, errors.New("postgres: "+wrong))
	}
	return errors.Join(faults...)
}

// state is what a server tells of itself.
type state struct {
	server, schema, known  int
	recovering             bool
	fsync                  string
	ahead                  bool // events have ids of transactions that this server has not had
	behind                 float64
	oldest                 float64 // seconds that the oldest open transaction that writes has lasted
	oldestOf, oldestUser   string
	sizeOfEvents, deadRows int64
}

func (db *DB) state(ctx context.Context) (s state, err error) {
	const what = "verify the database"
	all, err := scripts()
	if err != nil {
		return s, err
	}
	s.known = len(all)
	err = db.used(db.pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('fsync'), extract(epoch FROM clock_timestamp())::float8`).
		Scan(&s.server, &s.recovering, &s.fsync, &s.behind))
	if err != nil {
		return s, asFault(what, err)
	}
	if s.server < minVersion || s.recovering {
		return s, nil
	}
	switch s.schema, err = schemaVersion(ctx, db.pool); {
	case code(err) == undefinedTable, code(err) == invalidSchema:
		return s, nil
	case err != nil:
		return s, asFault(what, err)
	case s.schema != s.known:
		return s, nil
	}
	return s, asFault(what, db.used(db.pool.QueryRow(ctx, `SELECT coalesce((SELECT xid FROM events ORDER BY xid DESC LIMIT 1) >= pg_snapshot_xmax(pg_current_snapshot()), false)`).Scan(&s.ahead)))
}

// faults are what is wrong, each with what to do about it.
func (s *state) faults() (wrong []string) {
	add := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	add(s.server < minVersion, "the server has version %d: it takes PostgreSQL 13 or later", s.server/10000)
	add(s.recovering, "the server is a replica that only reads: give the address of the primary")
	add(s.fsync != "on", "the server runs with fsync off and loses what it acknowledged: set fsync = on")
	if s.server >= minVersion && !s.recovering {
		add(s.schema < s.known, "the schema has version %d and version %d is needed: set FEEDBOX_POSTGRES_MIGRATE=true, or run the migrations of infrastructure/postgres", s.schema, s.known)
		add(s.schema > s.known, "the schema has version %d, this program knows version %d: run the newer program", s.schema, s.known)
		add(s.ahead, "the events were copied from another server, whose transactions this one has not had: stop all relays, empty the table leases, run UPDATE events SET xid = pg_current_xact_id(), and start again: all events are sent once more")
	}
	return wrong
}

// identity tells this database from others in the names of leases.
func (db *DB) identity(ctx context.Context) (database string, err error) {
	err = db.used(db.pool.QueryRow(ctx, `SELECT current_database()`).Scan(&database))
	return strings.ToLower(database), asFault("read the name of the database", err)
}

// errNotMade says that something is used that Open did not make.
var errNotMade = fault.New(fault.Internal, "", "postgres: the DB is not made by Open")
