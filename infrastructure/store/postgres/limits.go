package postgres

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectTimeout bounds one attempt to connect and log in, if the URL does not (connect_timeout).
	connectTimeout = 5 * time.Second
	// acquireTimeout bounds the wait for a connection of the pool. It allows for a new connection
	// after the ping of an old one has failed.
	acquireTimeout = 10 * time.Second
	// pingTimeout bounds the check of a connection that has been idle for a second. Otherwise each
	// connection that went silent would cost one statement its whole timeout.
	pingTimeout = 2 * time.Second
	// defaultTimeout bounds one statement with its reply. A commit or a page of 10 MB needs 6 Mbit/s.
	// With acquireTimeout it is below the 30 s that a processor waits for a read.
	defaultTimeout = 15 * time.Second
	// upkeepTimeout bounds one statement that deletes expired rows, of which there may be 5,000.
	upkeepTimeout = 2 * time.Minute
	// migrateTimeout bounds one statement of a migration, which may rewrite a large table or wait
	// for another process that migrates.
	migrateTimeout = 30 * time.Minute
)

// keepAlive makes the kernel close a connection to a dead server after 30 s, also between
// statements.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// watcher ends the statement of a context that has ended, by a deadline of the connection. The handler of
// pgx then removes the deadline, also that of the close which has begun meanwhile (asyncClose), and the
// close would wait for a silent server for ever.
type watcher struct {
	*pgconn.DeadlineContextWatcherHandler
	conn *pgconn.PgConn
}

func newWatcher(conn *pgconn.PgConn) ctxwatch.Handler {
	return watcher{&pgconn.DeadlineContextWatcherHandler{Conn: conn.Conn()}, conn}
}

// HandleUnwatchAfterCancel implements ctxwatch.Handler.
func (w watcher) HandleUnwatchAfterCancel() {
	if !w.conn.IsClosed() {
		w.DeadlineContextWatcherHandler.HandleUnwatchAfterCancel()
	}
}

// limiter bounds all statements of a pool. It is a tracer because pgx passes every statement with
// its context to the tracer, so no caller can omit the limit.
type limiter struct{ statement time.Duration }

var (
	_ pgx.QueryTracer       = limiter{}
	_ pgx.BatchTracer       = limiter{}
	_ pgxpool.AcquireTracer = limiter{}
)

type (
	longerKey struct{} // the value is the limit of the statements of a context
	cancelKey struct{}
)

// withLimit replaces the limit of the statements that are called with the context.
func withLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, longerKey{}, limit)
}

func (l limiter) start(ctx context.Context) context.Context {
	longer, _ := ctx.Value(longerKey{}).(time.Duration)
	return bounded(ctx, cmp.Or(longer, l.statement))
}

func bounded(ctx context.Context, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(ctx, limit)
	return context.WithValue(ctx, cancelKey{}, cancel) // end calls it
}

func end(ctx context.Context) {
	if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok {
		cancel()
	}
}

func (l limiter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return l.start(ctx)
}

func (limiter) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	noteStandby(conn, data.Err)
	end(ctx)
}

func (l limiter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return l.start(ctx)
}

func (limiter) TraceBatchQuery(_ context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	noteStandby(conn, data.Err)
}

func (limiter) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) { end(ctx) }

func (limiter) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	return bounded(ctx, acquireTimeout)
}

func (limiter) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireEndData) {
	end(ctx)
}

const standbyKey = "feedbox standby" // of a connection's custom data

// noteStandby marks a connection to a standby by the error of a statement. A primary that only accepts reads,
// for example because its disk is full, may say that it is none. Then a new connection would be no better.
func noteStandby(conn *pgx.Conn, err error) {
	if c := code(err); (c == classReadOnly || c == notReady) && conn.PgConn().ParameterStatus("in_hot_standby") != "off" {
		conn.PgConn().CustomData()[standbyKey] = true
	}
}

// usable reports whether the pool may use a connection again. After a failover the address may lead to the old
// primary for some seconds. The pool would keep connections to it for an hour, in which nothing could be written.
func usable(_ context.Context, conn *pgx.Conn) (bool, error) {
	return conn.PgConn().CustomData()[standbyKey] == nil, nil
}
