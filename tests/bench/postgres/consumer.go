package postgres

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/infrastructure/broker/rabbitmq"
	kit "feedbox/infrastructure/consumer"
)

// consumer receives from the queues of a turn, with a goroutine per queue, and checks the
// order of each key.
type consumer struct {
	conn *amqp.Connection
	seen []atomic.Bool // by an event's place in the backlog
	got  func(n int)   // called with each new event; may be nil

	// Events; repeated messages; events that arrived after a later one of their key; messages
	// of other origin.
	fresh, repeats, disorder, unknown atomic.Int64

	began   chan struct{}
	once    sync.Once
	running sync.WaitGroup
	failed  atomic.Pointer[error]
}

// gathered is the number of deliveries per acknowledgement.
const gathered = 100

func consume(url string, queues []string, events int, got func(n int)) (*consumer, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, err
	}
	c := &consumer{conn: conn, seen: make([]atomic.Bool, events), got: got, began: make(chan struct{})}
	for _, queue := range queues {
		ch, err := conn.Channel()
		if err == nil {
			err = ch.Qos(10*gathered, 0, false)
		}
		var deliveries <-chan amqp.Delivery
		if err == nil {
			deliveries, err = ch.Consume(queue, "", false, false, false, false, nil)
		}
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		c.running.Go(func() { c.receive(deliveries) })
	}
	return c, nil
}

func (c *consumer) close() {
	_ = c.conn.Close() // it ends the deliveries
	c.running.Wait()
}

// receive handles the deliveries of a queue until its channel is closed.
func (c *consumer) receive(deliveries <-chan amqp.Delivery) {
	highest := map[string]int64{} // sequence, by key
	unacked := 0
	idle := time.NewTicker(20 * time.Millisecond)
	defer idle.Stop()
	var latest amqp.Delivery
	for {
		select {
		case d, open := <-deliveries:
			if !open {
				return
			}
			events, err := rabbitmq.Unpack(&d)
			if err != nil {
				c.failed.CompareAndSwap(nil, &err)
			}
			for i := range events {
				c.judge(&events[i], highest)
			}
			c.once.Do(func() { close(c.began) })
			latest = d
			unacked++
		case <-idle.C:
			if unacked == 0 {
				continue
			}
			unacked = gathered
		}
		if unacked >= gathered {
			unacked = 0
			if err := latest.Ack(true); err != nil {
				c.failed.CompareAndSwap(nil, &err)
			}
		}
	}
}

func (c *consumer) judge(d *amqp.Delivery, highest map[string]int64) {
	n := place(d.MessageId)
	if n < 0 || n >= len(c.seen) {
		c.unknown.Add(1)
		return
	}
	if c.seen[n].Swap(true) {
		c.repeats.Add(1)
		return
	}
	key, _ := d.Headers[kit.PropertyKey].(string)
	var sequence int64
	switch s := d.Headers[kit.PropertySequence].(type) {
	case int64:
		sequence = s
	case string:
		sequence, _ = strconv.ParseInt(s, 10, 64) // 0 is out of order
	}
	if sequence <= highest[key] {
		c.disorder.Add(1)
	} else {
		highest[key] = sequence
	}
	if c.got != nil {
		c.got(n)
	}
	c.fresh.Add(1)
}

// wait returns when all events have arrived, or if none has arrived for a minute.
func (c *consumer) wait(ctx context.Context) error {
	n := len(c.seen)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	moved, seen := time.Now(), int64(0)
	for c.fresh.Load() < int64(n) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if now := c.fresh.Load(); now != seen {
			moved, seen = time.Now(), now
		} else if time.Since(moved) > time.Minute {
			return fmt.Errorf("%d of %d events, and no more for a minute", now, n)
		}
	}
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}
