package relay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/lab/verify"
)

// connections is the number of the consumer's connections, each with a processor. A single one
// cannot use both cores, because a chain of goroutines serves it (go-amqp: a reader, one per
// AMQP session, one per link, a writer).
const connections = 2

var source = subscriber.Subscription(topic, subscription)

func (b *broker) namespace() servicebus.ClientConfig {
	return servicebus.ClientConfig{ConnectionString: b.bus.ConnectionString()}
}

// receiver consumes every message with the consumer kit, which completes it.
type receiver struct {
	sessions bool
	want     int
	running  *errgroup.Group
	stop     context.CancelFunc
	over     chan struct{} // closed when the last message is completed

	mu       sync.Mutex // guards the fields below
	got      []arrival  // in the order of handling
	settled  int
	amiss    int // deliveries that were not the next event of their key
	reported error
}

// arrival is a message with its sequence number from the broker.
type arrival struct {
	sequence int64
	message  verify.Message
}

// processor is a processor of the consumer kit.
type processor interface {
	Run(ctx context.Context) error
}

// start starts receiving.
func (c *receiver) start(ctx context.Context, b *broker, want int) error {
	c.want, c.over, c.got = want, make(chan struct{}), make([]arrival, 0, want)
	ctx, c.stop = context.WithCancel(ctx)
	c.running, ctx = errgroup.WithContext(ctx)
	for range connections {
		p, err := c.processor(b)
		if err != nil {
			return err
		}
		c.running.Go(func() error { return p.Run(ctx) })
	}
	return nil
}

func (c *receiver) processor(b *broker) (processor, error) {
	if c.sessions {
		return subscriber.NewSessionProcessor(b.namespace(), source, c.handle, &subscriber.SessionOptions{Sessions: 32, Observe: c.observe})
	}
	return subscriber.NewProcessor(b.namespace(), source, c.handle, &subscriber.Options{Concurrency: 64, Prefetch: 500, Observe: c.observe})
}

func (c *receiver) handle(_ context.Context, e *consumer.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, arrival{e.SequenceNumber, verify.Message{
		ID: e.ID, Session: e.Key, Subject: e.Action, Version: e.AggregateVersion, Sequence: e.Sequence,
	}})
	return nil
}

func (c *receiver) observe(_ context.Context, o consumer.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.Verdict != consumer.Fresh || o.Action != consumer.Handled {
		c.amiss++
		c.reported = cmp.Or(c.reported, fmt.Errorf("event %s: %s, %s: %w", o.Event.ID, o.Verdict, o.Action, o.Err))
	}
	if c.settled++; c.settled == c.want {
		close(c.over)
	}
}

// receive returns when the last message is completed.
func (c *receiver) receive(ctx context.Context) error {
	select {
	case <-c.over:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("%d of %d events were completed: %w", c.settled, c.want, ctx.Err())
	}
}

// messages returns all handled messages: with sessions in the order of handling, otherwise in
// the order of the broker's sequence numbers.
func (c *receiver) messages() ([]verify.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.amiss > 0 {
		return nil, fmt.Errorf("%d deliveries were not the next of their key; the first: %w", c.amiss, c.reported)
	}
	if !c.sessions {
		slices.SortFunc(c.got, func(a, b arrival) int { return cmp.Compare(a.sequence, b.sequence) })
	}
	messages := make([]verify.Message, len(c.got))
	for i := range c.got {
		messages[i] = c.got[i].message
	}
	return messages, nil
}

func (c *receiver) close() error {
	c.stop()
	return c.running.Wait()
}
