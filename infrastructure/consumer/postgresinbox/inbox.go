// Package postgresinbox stores a consumer's inbox in a table of the PostgreSQL database to which its
// handlers write. Do runs a handler and records its event in one transaction, so the writes of an
// event are stored exactly once, even after a crash.
//
//	inbox, err := postgresinbox.New(pool, "billing", nil)
//	err = inbox.Create(ctx) // the table, unless it exists
//	err = inbox.Do(ctx, received, func(ctx context.Context, tx pgx.Tx) error {
//		_, err := tx.Exec(ctx, `UPDATE totals SET orders = orders + 1 WHERE id = $1`, received.Key)
//		return err
//	})
//
// Several consumers may share the table, because each has its own row per key. Do locks the row of a
// key while the handler runs. A process that has lost the key without noticing therefore waits, and
// then finds that the event was handled.
//
// The package starts no goroutines.
package postgresinbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/internal/limit"
)

// Pool contains the methods of *pgxpool.Pool that an inbox uses.
type Pool interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Inbox is a consumer.Inbox in a table. It is safe for concurrent use.
type Inbox struct {
	pool     Pool
	consumer string
	table    string // quoted
	timeout  time.Duration
}

var _ consumer.Inbox = (*Inbox)(nil)

// Options are the options of New. Zero means the default.
type Options struct {
	// Table contains the marks. It may have a schema: "schema.table". Default "feedbox_inbox".
	Table string
	// Timeout bounds the statements of an operation. For Do, it bounds those before the handler, and
	// those after it. Default 15 s. Forget may take two minutes.
	Timeout time.Duration
}

const forgetTimeout = 2 * time.Minute

// New returns the inbox of the named consumer. It does no I/O.
func New(pool Pool, consumer string, opts *Options) (*Inbox, error) {
	if pool == nil || consumer == "" {
		return nil, errors.New("postgres inbox: pool and consumer are required")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	return &Inbox{pool, consumer, pgx.Identifier(strings.Split(cmp.Or(o.Table, "feedbox_inbox"), ".")).Sanitize(), o.Timeout}, nil
}

// Create creates the table unless it exists. It is safe to call from several processes at once.
func (b *Inbox) Create(ctx context.Context) error {
	ctx, l := limit.Start(ctx, b.timeout)
	return wrap("create the inbox", l.End(pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		// Without the lock, the second of two concurrent calls that both find no table would fail.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('feedbox ' || $1, 0))`, b.table); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS `+b.table+` (
		consumer text NOT NULL, key text NOT NULL, sequence bigint NOT NULL, aggregate_version bigint NOT NULL, event_id text NOT NULL,
		handled_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (consumer, key)) WITH (fillfactor = 70)`)
		return err
	})))
}

// Last implements consumer.Inbox.
func (b *Inbox) Last(ctx context.Context, key string) (m consumer.Mark, err error) {
	ctx, l := limit.Start(ctx, b.timeout)
	err = l.End(b.pool.QueryRow(ctx, `SELECT sequence, aggregate_version, event_id FROM `+b.table+` WHERE consumer = $1 AND key = $2`, b.consumer, key).
		Scan(&m.Sequence, &m.AggregateVersion, &m.EventID))
	if errors.Is(err, pgx.ErrNoRows) {
		return consumer.Mark{}, nil
	}
	decode(&m)
	return m, wrap("read the inbox of key "+key, err)
}

// The column event_id has Mark.Recent and Mark.Parking, too, in lines of their own. Other columns would need
// a migration of tables that adopters have created.
func encode(m *consumer.Mark) string {
	return strings.TrimRight(oneLine(m.EventID)+"\n"+m.Recent+"\n"+oneLine(m.Parking), "\n")
}

func decode(m *consumer.Mark) {
	id, rest, _ := strings.Cut(m.EventID, "\n")
	recent, parking, _ := strings.Cut(rest, "\n")
	m.EventID, m.Recent, m.Parking = unquoted(id), recent, unquoted(parking)
}

// oneLine quotes an id that has several lines, or begins with a quote. Its producer may have left the end of a line
// in it; the event would be handled with each delivery.
func oneLine(id string) string {
	if strings.Contains(id, "\n") || strings.HasPrefix(id, `"`) {
		return strconv.Quote(id)
	}
	return id
}

func unquoted(line string) string {
	if id, err := strconv.Unquote(line); err == nil && line[0] == '"' {
		return id
	}
	return line
}

// Record implements consumer.Inbox. It does not change a mark that Do has stored.
func (b *Inbox) Record(ctx context.Context, key string, m consumer.Mark) error {
	ctx, l := limit.Start(ctx, b.timeout)
	_, err := b.pool.Exec(ctx, `INSERT INTO `+b.table+` AS b (consumer, key, sequence, aggregate_version, event_id) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (consumer, key) DO UPDATE SET sequence = EXCLUDED.sequence, aggregate_version = EXCLUDED.aggregate_version, event_id = EXCLUDED.event_id, handled_at = now()
		WHERE b.sequence < EXCLUDED.sequence OR $6 <> '' AND split_part(b.event_id, E'\n', 1) = $6 OR CASE
			WHEN b.sequence = EXCLUDED.sequence AND split_part(b.event_id, E'\n', 1) = $8 THEN $7 <> '' AND ($7 <> $9 OR split_part(b.event_id, E'\n', 3) = $10)
			ELSE $7 IN ('', $10) AND EXCLUDED.sequence = 0 END`,
		b.consumer, key, m.Sequence, m.AggregateVersion, encode(&m), oneLine(m.Replaces), m.Parking, oneLine(m.EventID), consumer.OpenKey, consumer.ParkedKey)
	return wrap("write the inbox of key "+key, l.End(err))
}

// Do runs handle in a transaction that also records e, and commits it. It skips an event that was
// handled before, without an error. After an error the event must be redelivered. Nothing was stored,
// unless the response to the commit was lost; Do then skips the redelivered event.
func (b *Inbox) Do(ctx context.Context, e *consumer.Event, handle func(ctx context.Context, tx pgx.Tx) error) error {
	if e == nil || e.Key == "" || e.ID == "" {
		return errors.New("postgres inbox: an event with a key and an id is required")
	}
	ctx, l := limit.Start(ctx, b.timeout)
	err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		var last consumer.Mark
		// The update changes nothing. It locks an existing row until the transaction ends.
		err := tx.QueryRow(ctx, `INSERT INTO `+b.table+` (consumer, key, sequence, aggregate_version, event_id) VALUES ($1, $2, 0, 0, '')
			ON CONFLICT (consumer, key) DO UPDATE SET key = EXCLUDED.key RETURNING sequence, aggregate_version, event_id`, b.consumer, e.InboxKey()).
			Scan(&last.Sequence, &last.AggregateVersion, &last.EventID)
		if err != nil {
			return err
		}
		decode(&last)
		if v := consumer.Judge(last, e); v == consumer.Duplicate || v == consumer.Stale {
			return errHandled
		}
		if err := last.MayHandle(e); err != nil {
			return err
		}
		e.Replaced = last.Replaced(e)
		next := last.Next(e)
		if _, err := tx.Exec(ctx, `UPDATE `+b.table+` SET sequence = $3, aggregate_version = $4, event_id = $5, handled_at = now() WHERE consumer = $1 AND key = $2`,
			b.consumer, e.InboxKey(), e.Sequence, e.AggregateVersion, encode(&next)); err != nil {
			return err
		}
		return l.Suspend(func() error { return handle(ctx, tx) })
	})
	if err = l.End(err); errors.Is(err, errHandled) {
		return nil
	}
	return wrap("handle event "+e.ID+" of key "+e.Key, err)
}

var errHandled = errors.New("event already handled")

// Forget deletes the marks of keys whose last event was handled longer ago than age. The age should
// exceed the time within which an event may be redelivered. It returns the number of deleted marks.
func (b *Inbox) Forget(ctx context.Context, age time.Duration) (keys int64, err error) {
	ctx, l := limit.Start(ctx, forgetTimeout)
	done, err := b.pool.Exec(ctx, `DELETE FROM `+b.table+` WHERE consumer = $1 AND handled_at < now() - make_interval(secs => $2)`, b.consumer, age.Seconds())
	return done.RowsAffected(), wrap("forget old marks", l.End(err))
}

func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, err)
}
