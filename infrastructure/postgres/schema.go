package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
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
	s, err := db.State(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for _, wrong := range s.Faults() {
		faults = append(faults, fmt.Errorf("postgres: %s: %s", wrong.Problem, wrong.Next))
	}
	return errors.Join(faults...)
}

// identity tells this database from others in the names of leases.
func (db *DB) identity(ctx context.Context) (database string, err error) {
	err = db.used(db.pool.QueryRow(ctx, `SELECT current_database()`).Scan(&database))
	return strings.ToLower(database), asFault("read the name of the database", err)
}

// errNotMade says that something is used that Open did not make.
var errNotMade = errors.New("postgres: the DB is not made by Open")
