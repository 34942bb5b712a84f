package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
)

// rabbit is a RabbitMQ server.
type rabbit struct{ url *url.URL }

func rabbitBroker(u *url.URL) broker {
	if u.Host == "" {
		return nil
	}
	return &rabbit{u}
}

func (r *rabbit) variables(e *endpoints) []string {
	return []string{"FEEDBOX_BROKER", config.BrokerRabbitMQ, "FEEDBOX_RABBITMQ_URL", r.url.String(), "FEEDBOX_RABBITMQ_EXCHANGE", e.Topic}
}

func (r *rabbit) consumer(e *endpoints) string {
	group := r.group(e, e.Subscription)
	return fmt.Sprintf("%s:%d", group.Name, group.Queues)
}

func (r *rabbit) rows(*endpoints) []string { return []string{"RabbitMQ", r.url.Redacted()} }

func (*rabbit) copies() error { return nil }

func (r *rabbit) client() (*rabbitmq.Client, error) {
	return rabbitmq.NewClient(rabbitmq.Config{URL: r.url.String(), Name: "feedbox-dev"})
}

// group returns the queues that correspond to a subscription of Service Bus.
func (*rabbit) group(e *endpoints, subscription string) rabbitmq.Group {
	return rabbitmq.Group{Name: e.Topic + "." + subscription, Queues: 4}
}

func (r *rabbit) subscriber(ctx context.Context, e *endpoints, record bool, screen *printer, log *slog.Logger, t *telemetry.Telemetry) (*demoSubscriber, error) {
	client, err := r.client()
	if err != nil {
		return nil, usageError{fmt.Errorf("--broker: %w", err)}
	}
	groups := []rabbitmq.Group{r.group(e, e.Subscription)}
	if record {
		groups = append(groups, r.group(e, recording))
	}
	if err := rabbitmq.Declare(ctx, client, e.Topic, groups...); err != nil {
		return nil, errors.Join(fmt.Errorf("--broker: %w; is RabbitMQ running there?", err), client.Close())
	}
	c, err := rabbitmq.NewConsumer(client, groups[0], screen.event, &rabbitmq.ConsumerOptions{
		Options: consumer.Options{Concurrency: 32, Logger: log.With("part", "subscriber"), Meters: t.Meters, Tracers: t.Exported()},
	})
	return &demoSubscriber{c, client.Close}, err
}

func (r *rabbit) empty(ctx context.Context, e *endpoints, subscription string, idle time.Duration, add func(messageRecord)) (err error) {
	client, err := r.client()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	var number atomic.Int64
	quiet := newQuiet(max(10*time.Second, idle), idle, stop) // longer for the first event, because connecting takes time
	c, err := rabbitmq.NewConsumer(client, r.group(e, subscription), func(_ context.Context, m *consumer.Event) error {
		add(messageRecord{ID: m.ID, Session: m.Key, Subject: m.Action, Version: m.AggregateVersion, Sequence: m.Sequence, Number: number.Add(1)})
		return nil
	}, &rabbitmq.ConsumerOptions{Options: consumer.Options{
		Observe: quiet.observe, RetryDelay: gapDelay, RetryDelayMax: gapDelay, // every gap of a key is waited for, one after the other
	}})
	if err == nil {
		err = c.Run(receiving)
	}
	return errors.Join(err, ctx.Err(), quiet.left())
}

// gapDelay is the time that a key waits for a missing event before each of a few attempts. It is
// short, because the queue already has all events when it is emptied.
const gapDelay = 100 * time.Millisecond

// quiet calls end when no event was settled for idle. While events wait in the consumer, it calls
// end after answerTimeout, because their attempts are paused for longer than idle.
type quiet struct {
	idle  time.Duration
	timer *time.Timer

	mu      sync.Mutex      // guards the fields below
	waiting map[string]bool // ids; a redelivery has the id of the lost event
	late    bool            // the timer has expired while events waited
}

// newQuiet returns a quiet whose first wait takes first.
func newQuiet(first, idle time.Duration, end func()) *quiet {
	q := &quiet{idle: idle, waiting: map[string]bool{}}
	q.timer = time.AfterFunc(first, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if len(q.waiting) == 0 || q.late {
			end()
			return
		}
		q.late = true
		q.timer.Reset(answerTimeout)
	})
	return q
}

func (q *quiet) observe(_ context.Context, out consumer.Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if delete(q.waiting, out.Event.ID); out.Action == consumer.Abandoned {
		q.waiting[out.Event.ID] = true
	}
	q.late = false
	q.timer.Reset(q.idle)
}

// left returns an error if events were not settled.
func (q *quiet) left() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	return fmt.Errorf("%d keys have events that were not taken off the queue: run dump again", len(q.waiting))
}
