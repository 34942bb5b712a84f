package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// minVersion is the oldest server with pg_snapshot_xmin, which returns an xid8.
const minVersion = 130000

//go:embed migrations/0001_outbox.sql
var outboxScript string

//go:embed migrations/0002_gates.sql
var gatesScript string

//go:embed migrations/0003_expiring.sql
var expiringScript string

//go:embed migrations/0004_emit.sql
var emitScript string

//go:embed migrations/0005_consumer_gates.sql
var consumerGatesScript string

// scripts create the schema, one script per version. compatible is the oldest version whose programs
// can go on with the schema, and can start again: a script first adds what new programs need, and a
// script of a later version removes what no program needs any more.
var scripts = []struct {
	sql        string
	compatible int
}{{outboxScript, 1}, {gatesScript, 2}, {expiringScript, 2}, {emitScript, 2}, {consumerGatesScript, 2}}

// schemaVersion returns the version of the schema, and the oldest one whose programs can use it.
// Earlier releases did not store the latter.
const schemaVersion = `SELECT version, coalesce((to_jsonb(v)->>'compatible')::int, version) FROM feedbox.schema_version AS v ORDER BY version DESC LIMIT 1`

// lockTimeout bounds the wait of a migration for the lock of a table. Statements that need the table
// later wait for the migration, so a long transaction would otherwise stop all writers.
const lockTimeout = 5 * time.Second

// Migrate creates the schema or migrates it to this version. Several processes may call it at the
// same time. Programs of earlier versions go on meanwhile, unless the release notes say otherwise. If
// a transaction keeps a table locked, Migrate changes nothing and fails after 5 s; repeat it.
func (db *DB) Migrate(ctx context.Context) error {
	ctx = withLimit(ctx, migrateTimeout)
	err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		schema := db.schema()
		// The limits of the role are for its queries; migrateTimeout bounds this.
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0`); err != nil {
			return err
		}
		// The scripts name no schema.
		if _, err := tx.Exec(ctx, `SELECT set_config('search_path', $1, true), pg_advisory_xact_lock(hashtextextended('feedbox ' || $1, 0))`, schema); err != nil {
			return err
		}
		var there bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, schema+".schema_version").Scan(&there); err != nil {
			return err
		}
		if !there { // so that the right to create a schema is needed only once
			if _, err := tx.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+schema+`;
				CREATE TABLE `+schema+`.schema_version (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`); err != nil {
				return err
			}
		}
		var version, compatible int
		if err := tx.QueryRow(ctx, db.in(schemaVersion)).Scan(&version, &compatible); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if version >= len(scripts) {
			return nil
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = %d; ALTER TABLE schema_version ADD COLUMN IF NOT EXISTS compatible integer`, lockTimeout.Milliseconds())); err != nil {
			return err
		}
		for ; version < len(scripts); version++ {
			next := scripts[version]
			if _, err := tx.Exec(ctx, next.sql+fmt.Sprintf(`INSERT INTO schema_version (version, compatible) VALUES (%d, %d)`, version+1, next.compatible)); err != nil {
				return fmt.Errorf("version %d: %w", version+1, err)
			}
		}
		return nil
	})
	return asFault("migrate the schema", db.used(err))
}

// Verify refuses a database on which the guarantees do not hold: a server that is too old, is a
// replica or may lose acknowledged commits, a schema of another version, events that were copied
// from another server. If the database does not answer, the fault is Unavailable.
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
