package testkit

import (
	"sync"
	"testing"

	"feedbox/infrastructure/lab/recorder"
	"feedbox/infrastructure/lab/verify"
)

// Consumer receives every session of a subscription and keeps the messages in the order of their
// arrival. It reconnects after a restart of the broker.
type Consumer struct {
	recorder *recorder.Recorder

	mu       sync.Mutex // guards arrivals
	arrivals []Arrival
}

// Arrival is a received message.
type Arrival = recorder.Arrival

// StartConsumer begins to receive with a number of concurrent sessions.
func (e Endpoints) StartConsumer(t *testing.T, sessions int) *Consumer {
	t.Helper()
	c := &Consumer{}
	var err error
	c.recorder, err = recorder.Start(t.Context(), e.ServiceBusConnectionString, e.Topic, e.Subscription, sessions, c.keep)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

func (c *Consumer) keep(a Arrival) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrivals = append(c.arrivals, a)
}

// Stop ends the consumer and waits for it. It may be called more than once.
func (c *Consumer) Stop() { c.recorder.Stop() }

// Messages returns the received messages without redeliveries.
func (c *Consumer) Messages() []verify.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	messages := make([]verify.Message, len(c.arrivals))
	for i := range c.arrivals {
		messages[i] = c.arrivals[i].Message
	}
	return messages
}

// Arrivals returns the received messages from index n on.
func (c *Consumer) Arrivals(n int) []Arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Arrival(nil), c.arrivals[n:]...)
}

// Count returns the number of received messages.
func (c *Consumer) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.arrivals)
}

// Redelivered returns the number of redeliveries.
func (c *Consumer) Redelivered() int { return c.recorder.Redelivered() }
