package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is a database with Feedbox's schema. It is safe for concurrent use.
type DB struct {
	pool    *pgxpool.Pool
	options DBOptions
	routes  connections
	term    atomic.Pointer[string] // see termExpression
}

// DBOptions are the options of Open. Nil and zero values are the defaults.
type DBOptions struct {
	// Schema holds the tables. Default "feedbox", at most 63 bytes.
	Schema string
	// Used is called after each use of the database, with its error. Default: none.
	Used func(err error)
	// Timeout bounds each statement with its reply, except for migrations and the deletion of
	// expired rows, which have longer limits. A statement may wait for a connection for another
	// 10 s. Default 15 s.
	Timeout time.Duration
	// Password returns the password of a new connection, for example a token of an identity, which
	// expires. It is called for each connection, with a limit of connect_timeout (5 s), and must be
	// safe for concurrent use. Default: the password of the URL.
	Password func(ctx context.Context, c *pgx.ConnConfig) (string, error)
	// Dial opens connections. Default: TCP with frequent keepalives, or a Unix socket.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// maxIdentifier is the length to which the server cuts a name without an error. Two schemas that differ only after
// it would be one, and the relay of each would send the events of both.
const maxIdentifier = 63

// maxConns limits the connections of one process if the URL does not (pool_max_conns).
const maxConns = 16

// Open parses the URL, postgres://user:password@host:port/database?sslmode=verify-full. The address
// may be that of a pooler, also one that pools by transaction. Open does not connect. The caller
// must close the DB.
func Open(url string, o *DBOptions) (*DB, error) {
	db := &DB{options: *cmp.Or(o, &DBOptions{})}
	db.options.Schema = cmp.Or(db.options.Schema, defaultSchema)
	db.options.Timeout = cmp.Or(db.options.Timeout, defaultTimeout)
	if db.options.Used == nil {
		db.options.Used = func(error) {}
	}
	if len(db.options.Schema) > maxIdentifier {
		return nil, fmt.Errorf("postgres: the name of the schema has %d bytes: use at most %d, because the server would cut it", len(db.options.Schema), maxIdentifier)
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("postgres: the URL cannot be read: give postgres://user:password@host:port/database?sslmode=verify-full")
	}
	if !strings.Contains(url, "pool_max_conns=") {
		config.MaxConns = maxConns
	}
	config.MaxConnIdleTime = 5 * time.Minute
	config.PingTimeout, config.PrepareConn = pingTimeout, usable
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, connectTimeout)
	config.ConnConfig.Tracer = limiter{db.options.Timeout}
	config.ConnConfig.BuildContextWatcherHandler = newWatcher
	config.ConnConfig.RuntimeParams["application_name"] = cmp.Or(config.ConnConfig.RuntimeParams["application_name"], "feedbox")
	db.routes.configure(config, db.options.Password)
	config.ConnConfig.DialFunc = (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext
	if db.options.Dial != nil {
		config.ConnConfig.DialFunc = db.options.Dial
	}
	if db.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil { //nolint:forbidigo // only for background connections, of which there are none
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return db, nil
}

// Close closes the connections when they are no longer in use.
func (db *DB) Close() { db.pool.Close() }

// in returns a statement for the tables of the DB's schema. Statements have those of the default one.
func (db *DB) in(sql string) string {
	if db.options.Schema == defaultSchema {
		return sql
	}
	return strings.ReplaceAll(sql, defaultSchema+".", db.schema()+".")
}

const defaultSchema = "feedbox"

func (db *DB) schema() string { return pgx.Identifier{db.options.Schema}.Sanitize() }

func (db *DB) query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return db.pool.Query(ctx, db.in(sql), args...)
}

func (db *DB) queryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return unsentError{err}
	}
	return heldRow{conn.QueryRow(ctx, db.in(sql), args...), conn}
}

// heldRow is a row that returns its connection to the pool when it is read.
type heldRow struct {
	pgx.Row
	conn *pgxpool.Conn
}

// Scan implements pgx.Row.
func (r heldRow) Scan(into ...any) error {
	defer r.conn.Release()
	return r.Row.Scan(into...)
}

// unsentError is the error of a statement without a connection: all are in use, or none can be opened. Nothing
// was sent to the server.
type unsentError struct{ error }

// SafeToRetry makes pgconn.SafeToRetry true.
func (unsentError) SafeToRetry() bool { return true }

func (e unsentError) Unwrap() error { return e.error }

// Scan implements pgx.Row.
func (e unsentError) Scan(...any) error { return e }

func (db *DB) exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return db.pool.Exec(ctx, db.in(sql), args...)
}

// durable makes the commit of a statement wait until it is on disk, even if the default of the
// database is off. It is true. A stronger default, which waits for a standby, stays.
const durable = `set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true) <> ''`

// used reports a use of the database and returns its error.
func (db *DB) used(err error) error {
	if answered(err) {
		db.options.Used(nil)
	} else {
		db.options.Used(err)
	}
	return err
}

// all returns the rows of a query. The columns have the names of fields of T; fields without a
// column stay zero. what names the operation in errors.
func all[T any](ctx context.Context, db *DB, what, sql string, args ...any) ([]T, error) {
	found, _ := db.query(ctx, sql, args...)
	list, err := pgx.CollectRows(found, pgx.RowToStructByNameLax[T])
	return list, asFault(what, db.used(err))
}

// row queries one row. missing is the error if there is none; nil leaves into unchanged.
func (db *DB) row(ctx context.Context, what string, missing error, into []any, sql string, args ...any) error {
	err := db.used(db.queryRow(ctx, sql, args...).Scan(into...))
	if errors.Is(err, pgx.ErrNoRows) {
		return missing
	}
	return asFault(what, err)
}

// interval returns a lifetime as an argument of a statement: NULL, for ever, if it is negative.
func interval(lifetime time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: lifetime.Microseconds(), Valid: lifetime >= 0}
}
