package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// job has the arguments of a job.
type job struct{ event }

// Kind implements river.JobArgs.
func (job) Kind() string { return "event" }

// workers is the number of concurrent jobs. River's free edition does not keep their order.
const workers = 100

func fillRiver(ctx context.Context, pool *pgxpool.Pool, events []event) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, `DROP TABLE IF EXISTS river_job, river_leader, river_migration, river_queue, river_client_queue, river_client, river_notification CASCADE; DROP TYPE IF EXISTS river_job_state CASCADE; DROP FUNCTION IF EXISTS river_job_state_in_bitmask CASCADE`); err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	if err != nil {
		return err
	}
	for len(events) > 0 {
		n := min(1000, len(events))
		jobs := make([]river.InsertManyParams, n)
		for i, e := range events[:n] {
			jobs[i].Args = job{e}
		}
		if _, err := client.InsertManyFast(ctx, jobs); err != nil {
			return err
		}
		events = events[n:]
	}
	_, err = pool.Exec(ctx, `VACUUM ANALYZE`)
	return err
}

// sender sends the events of jobs.
type sender struct {
	river.WorkerDefaults[job]
	exchange string
	channels chan *amqp.Channel
}

// Work implements river.Worker.
func (s *sender) Work(ctx context.Context, j *river.Job[job]) error {
	ch := <-s.channels
	e := &j.Args
	confirmed, err := ch.PublishWithDeferredConfirmWithContext(ctx, s.exchange, e.Queue, true, false, amqp.Publishing{
		MessageId: e.ID, Type: e.Action, ContentType: "application/json", DeliveryMode: amqp.Persistent,
		Headers: amqp.Table{"partitionKey": e.Key, "sequence": e.Sequence}, Body: []byte(e.Data),
	})
	s.channels <- ch
	if err != nil {
		return err
	}
	if ack, err := confirmed.WaitContext(ctx); err != nil || !ack {
		return errors.Join(err, fmt.Errorf("confirmed: %t", ack))
	}
	return nil
}

func relayRiver(ctx context.Context, pool *pgxpool.Pool, p place) error {
	conn, err := amqp.Dial(p.broker)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	s := &sender{exchange: p.exchange, channels: make(chan *amqp.Channel, 4)}
	for range cap(s.channels) {
		ch, err := conn.Channel()
		if err == nil {
			err = ch.Confirm(false)
		}
		if err != nil {
			return err
		}
		s.channels <- ch
	}
	all := river.NewWorkers()
	river.AddWorker[job](all, s)
	client, err := river.NewClient[pgx.Tx](riverpgxv5.New(pool), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}, Workers: all,
		FetchCooldown: time.Millisecond, FetchPollInterval: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	stopping, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	return client.Stop(stopping)
}
