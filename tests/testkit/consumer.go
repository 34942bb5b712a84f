package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/verify"
)

// Consumer receives every session of a subscription and keeps the messages in
// the order of their arrival. It outlives the broker: it connects again.
type Consumer struct {
	mu          sync.Mutex // guards what follows
	arrivals    []Arrival
	seen        map[int64]bool // sequence numbers of the broker
	redelivered int

	cancel context.CancelFunc
	done   sync.WaitGroup
	client *azservicebus.Client
}

// Arrival is one message as the consumer got it.
type Arrival struct {
	verify.Message
	// Enqueued is when the broker accepted the message, on its clock.
	Enqueued time.Time
	// Number is the broker's sequence number. A message that the broker delivers
	// again, because it never learnt that the consumer has it, keeps its number; one
	// that the relay sent twice has two.
	Number int64
}

// StartConsumer begins to receive with a number of concurrent sessions.
func (e Endpoints) StartConsumer(t *testing.T, sessions int) *Consumer {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(e.ServiceBusConnectionString, &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: 200 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Consumer{cancel: cancel, client: client, seen: map[int64]bool{}}
	for range sessions {
		c.done.Go(func() { c.receive(ctx, e) })
	}
	t.Cleanup(c.Stop)
	return c
}

// Stop ends the consumer and waits for it. It can be called twice.
func (c *Consumer) Stop() {
	c.cancel()
	c.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.client.Close(ctx)
}

// Messages returns what has arrived, without what the broker delivered again.
func (c *Consumer) Messages() []verify.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	messages := make([]verify.Message, len(c.arrivals))
	for i := range c.arrivals {
		messages[i] = c.arrivals[i].Message
	}
	return messages
}

// Arrivals returns what has arrived from the n-th message on, from 0.
func (c *Consumer) Arrivals(n int) []Arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Arrival(nil), c.arrivals[n:]...)
}

// Count is the number of messages that have arrived.
func (c *Consumer) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.arrivals)
}

// Redelivered is how many messages the broker delivered again.
func (c *Consumer) Redelivered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.redelivered
}

func (c *Consumer) receive(ctx context.Context, e Endpoints) {
	for ctx.Err() == nil {
		accept, cancel := context.WithTimeout(ctx, 5*time.Second)
		session, err := c.client.AcceptNextSessionForSubscription(accept, e.Topic, e.Subscription, nil)
		cancel()
		if err != nil {
			pause(ctx, 50*time.Millisecond) // the broker may be gone
			continue                        // none has messages, or the consumer is being stopped
		}
		c.drain(ctx, session)
		closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = session.Close(closing)
		cancel()
	}
}

// drain takes what the session holds now and leaves it, so that a few receivers
// serve many sessions. It asks for one message at a time and never again after a
// time-out: between two calls the client gives back what arrives unasked
// (azservicebus, receiver.go, newReleaserFunc), and the next call may be faster,
// which would look like a breach of order.
func (c *Consumer) drain(ctx context.Context, session *azservicebus.SessionReceiver) {
	for {
		wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		batch, err := session.ReceiveMessages(wait, 1, nil)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || len(batch) == 0 {
			return
		}
		for _, m := range batch {
			c.keep(m)
			settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			err := session.CompleteMessage(settle, m, nil)
			cancel()
			if err != nil {
				return // it comes again, unless the broker knows
			}
		}
	}
}

// keep notes a message unless it was delivered before.
func (c *Consumer) keep(m *azservicebus.ReceivedMessage) {
	var data struct {
		AggregateVersion int64 `json:"aggregateVersion"`
		Sequence         int64 `json:"sequence"`
	}
	_ = json.Unmarshal(m.Body, &data) // a body that is no event shows up as a breach
	a := Arrival{Message: verify.Message{ID: m.MessageID, Version: data.AggregateVersion, Sequence: data.Sequence}}
	if m.SessionID != nil {
		a.Session = *m.SessionID
	}
	if m.Subject != nil {
		a.Subject = *m.Subject
	}
	if m.EnqueuedTime != nil {
		a.Enqueued = *m.EnqueuedTime
	}
	if m.SequenceNumber != nil {
		a.Number = *m.SequenceNumber
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[a.Number] {
		c.redelivered++
		return
	}
	c.seen[a.Number] = true
	c.arrivals = append(c.arrivals, a)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
