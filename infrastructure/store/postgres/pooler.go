package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A pooler (PgBouncer, for example) may give each transaction another connection to the server. So
// no statement depends on its session: tables are qualified, and writers set synchronous_commit in
// their transaction. The URL of a pooler looks like that of a server, but the process id in its
// greeting is not that of the server's process:
//
//	           ┌─ first connection ─▶ is the greeted process the server's? ─┐
//	unknown ───┤                                                            │
//	           │  yes: direct   prepared statements, no sequential scans    │
//	           └▶ no:  pooled   descriptions of statements, nothing else ◀──┘
//	                    ▲
//	direct ─────────────┘ a later connection is greeted by another process
//
// Descriptions are kept by the client, so they need nothing of the session. A pooled statement is
// planned anew each time. So it needs no enable_seqscan, which is for plans that the server keeps.
type route int32

const (
	unknown route = iota
	direct
	pooled
)

// connections opens the connections of a DB.
type connections struct {
	route    atomic.Int32
	password func(ctx context.Context, c *pgx.ConnConfig) (string, error) // nil: that of the URL
}

// configure adds c to a pool's configuration.
func (c *connections) configure(config *pgxpool.Config, password func(context.Context, *pgx.ConnConfig) (string, error)) {
	c.password = password
	config.BeforeConnect, config.AfterConnect = c.before, c.after
}

func (c *connections) before(ctx context.Context, config *pgx.ConnConfig) error {
	if c.password != nil {
		asking, cancel := context.WithTimeout(ctx, config.ConnectTimeout)
		defer cancel()
		password, err := c.password(asking, config)
		if err != nil {
			return fmt.Errorf("get the password: %w", err)
		}
		config.Password = password
	}
	if route(c.route.Load()) == unknown {
		probe := config.Copy()
		probe.Tracer = nil
		conn, err := pgx.ConnectConfig(ctx, probe)
		if err != nil {
			return err
		}
		is, err := greeted(ctx, conn)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // it was for this question only
		if err != nil {
			return fmt.Errorf("look for a pooler: %w", err)
		}
		c.route.CompareAndSwap(int32(unknown), int32(is))
	}
	if route(c.route.Load()) == pooled {
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return nil
}

var errPooled = errors.New("the server's address now leads to a pooler: connect again")

func (c *connections) after(ctx context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
	if route(c.route.Load()) == pooled {
		return nil
	}
	is, err := greeted(ctx, conn)
	if err == nil && is == pooled {
		c.route.Store(int32(pooled))
		err = errPooled
	}
	return err
}

// greeted asks a new connection whether the process of its greeting is the server's. All frequent
// queries have an index. A plan made while a table was small would scan the whole table, and the
// server keeps it until the table is analyzed again, so a direct connection makes no such plans.
func greeted(ctx context.Context, conn *pgx.Conn) (route, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	pid := int32(conn.PgConn().PID()) //nolint:gosec // 32 bits
	set, err := conn.PgConn().Exec(ctx, fmt.Sprintf(`SELECT 1 WHERE pg_backend_pid() = %d AND set_config('enable_seqscan', 'off', false) = 'off'`, pid)).ReadAll()
	if err != nil || len(set) != 1 {
		return unknown, cmp.Or(err, errors.New("no reply"))
	}
	if len(set[0].Rows) == 0 {
		return pooled, nil
	}
	return direct, nil
}
