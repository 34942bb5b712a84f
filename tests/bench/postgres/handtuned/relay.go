// Package handtuned is a relay for one table and one purpose, written and tuned by hand, for
// comparison in the benchmark. It keeps the order of each key unless the broker refuses a
// message. It has no leases, no moving ranges, no verdicts, no parked events and no metrics.
//
// Five workers share the keys by hash, each with a connection to the broker. A worker reads
// 1,000 rows at a time through a partial index that covers its sort and filter columns. It
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

// Workers and Queues are the numbers of workers and queues that share the keys.
const (
	Workers = 5
	Queues  = 8
	batch   = 1000
)

// Schema creates the table. Rows of a key are inserted in order under the lock of the
// aggregate, so that their ids are in the same order.
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

// Place returns the worker and the queue of a key.
func Place(key string) (worker, queue int) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // a hash returns no error
	n := int(h.Sum32() >> 4)
	return n % Workers, n / Workers % Queues
}

// Relay relays until ctx ends or an error occurs.
func Relay(ctx context.Context, database, broker, exchange string) error {
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return err
	}
	config.MaxConns = Workers
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	config.ConnConfig.RuntimeParams["enable_seqscan"] = "off" // like our relay; otherwise the server would keep the plan for an empty table
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
	reached  int64 // highest sent id
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

// stragglers is the distance below the highest id in which each read finds transactions that
// commit late.
const stragglers = 5000

// read reads the next rows. It starts at the beginning of the index only now and then, because
// there it must skip entries of sent rows that are not vacuumed yet.
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
