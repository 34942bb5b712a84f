// Package handtuned is a relay for one table and one purpose, written as one would write it
// by hand and tune it: the floor's peer of the benchmark. It keeps the order of each key as
// long as the broker refuses nothing, and knows no leases, no ranges that move, no verdicts, no
// parked events and no metrics.
//
// Five workers share the keys by their hash, each with a connection to the broker. A worker
// reads 1,000 rows at a time through a partial index that covers what it sorts and filters by,
// publishes them in order, waits for all confirmations and marks the rows with one update.
package handtuned

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"
)

// Workers and Queues are how many share the keys.
const (
	Workers = 5
	Queues  = 8
	batch   = 1000
)

// Schema is the table. Rows of a key are inserted in their order, under the lock of the
// aggregate, so that their ids are in that order, too.
const Schema = `CREATE TABLE outbox (
	id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	worker   smallint NOT NULL,
	queue    smallint NOT NULL,
	key      text NOT NULL,
	sequence bigint NOT NULL,
	event_id text NOT NULL,
	action   text NOT NULL,
	body     text NOT NULL,
	sent_at  timestamptz
);
CREATE INDEX outbox_unsent ON outbox (worker, id) INCLUDE (queue, key, sequence, event_id, action) WHERE sent_at IS NULL;`

// Place says which worker and which queue a key belongs to.
func Place(key string) (worker, queue int) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // a hash takes everything
	n := int(h.Sum32() >> 4)
	return n % Workers, n / Workers % Queues
}

// Relay relays until ctx ends, or something fails.
func Relay(ctx context.Context, database, broker, exchange string) error {
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return err
	}
	config.MaxConns = Workers
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	config.ConnConfig.RuntimeParams["enable_seqscan"] = "off" // as ours: a plan of the empty table would stay
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	workers, ctx := errgroup.WithContext(ctx)
	for n := range Workers {
		workers.Go(func() error {
			w := &worker{pool: pool, number: n, exchange: exchange, names: queueNames()}
			return w.run(ctx, broker)
		})
	}
	return workers.Wait()
}

type worker struct {
	pool     *pgxpool.Pool
	number   int
	exchange string
	names    []string

	channel  *amqp.Channel
	confirms chan amqp.Confirmation
	ids      []int64
	rows     []row
	reached  int64 // highest id that was sent
	searched time.Time
}

type row struct {
	id, sequence       int64
	queue              int16
	key, event, action string
	body               []byte
}

func queueNames() []string {
	names := make([]string, Queues)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

func (w *worker) run(ctx context.Context, broker string) error {
	conn, err := amqp.Dial(broker)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if w.channel, err = conn.Channel(); err != nil {
		return err
	}
	if err := w.channel.Confirm(false); err != nil {
		return err
	}
	w.confirms = w.channel.NotifyPublish(make(chan amqp.Confirmation, batch))
	for ctx.Err() == nil {
		if err := w.read(ctx); err != nil {
			return w.ended(ctx, err)
		}
		if len(w.rows) == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Millisecond):
			}
			continue
		}
		if err := w.publish(ctx); err != nil {
			return w.ended(ctx, err)
		}
		if _, err := w.pool.Exec(ctx, `UPDATE outbox SET sent_at = now() WHERE id = ANY ($1)`, w.ids); err != nil {
			return w.ended(ctx, err)
		}
	}
	return nil
}

func (*worker) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// stragglers is how far behind the highest id a transaction may commit late without being
// looked for separately.
const stragglers = 5000

// read reads the next rows. The index has entries of rows that were sent until they are
// vacuumed, which a read from its beginning passes over; so it begins there only now and then.
func (w *worker) read(ctx context.Context) error {
	from := max(0, w.reached-stragglers)
	if len(w.rows) == batch {
		from = w.reached
	}
	if now := time.Now(); now.Sub(w.searched) > 5*time.Second {
		from, w.searched = 0, now
	}
	w.rows, w.ids = w.rows[:0], w.ids[:0]
	found, err := w.pool.Query(ctx, `SELECT id, queue, key, sequence, event_id, action, body FROM outbox
		WHERE worker = $1 AND sent_at IS NULL AND id > $2 ORDER BY id LIMIT $3`, int16(w.number), from, batch)
	if err != nil {
		return err
	}
	var r row
	_, err = pgx.ForEachRow(found, []any{&r.id, &r.queue, &r.key, &r.sequence, &r.event, &r.action, &r.body}, func() error {
		w.rows, w.ids = append(w.rows, r), append(w.ids, r.id)
		w.reached = max(w.reached, r.id)
		r.body = nil
		return nil
	})
	return err
}

func (w *worker) publish(ctx context.Context) error {
	for i := range w.rows {
		r := &w.rows[i]
		err := w.channel.PublishWithContext(ctx, w.exchange, w.names[r.queue], true, false, amqp.Publishing{
			MessageId: r.event, Type: r.action, ContentType: "application/json", DeliveryMode: amqp.Persistent,
			Headers: amqp.Table{"partitionKey": r.key, "sequence": r.sequence}, Body: r.body,
		})
		if err != nil {
			return err
		}
	}
	for range w.rows {
		select {
		case c, open := <-w.confirms:
			if !open {
				return errors.New("the channel was closed")
			}
			if !c.Ack {
				return fmt.Errorf("message %d was not taken", c.DeliveryTag)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
