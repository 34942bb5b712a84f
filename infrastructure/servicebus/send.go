package servicebus

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/application/relay"
	"feedbox/infrastructure/failpoint"
)

// call is one Publish call. Its groups are cut into trains, which go beside each other; a
// train is sent batch by batch.
type call struct {
	publisher *Publisher
	groups    []relay.Group
	results   []relay.KeyError      // by group; written by the sender of its train only
	next      atomic.Int64          // the first train that no sender has taken
	cutOff    atomic.Pointer[error] // why the broker cannot be reached; nil = no try has failed
}

// item is a message of a group.
type item struct{ group, message int }

// plan returns the trains: one a key, or with pack one for every so many messages. A
// key is never cut, so its batches follow each other.
func (c *call) plan(pack bool) (trains [][]item) {
	var items []item
	first := 0 // of the train
	cut := func() {
		if len(items) > first {
			trains, first = append(trains, items[first:]), len(items)
		}
	}
	for i := range c.groups {
		alone := !pack || c.groups[i].Alone
		if alone {
			cut()
		}
		for n := range c.groups[i].Messages {
			items = append(items, item{i, n})
		}
		if alone || len(items)-first >= c.publisher.opts.limits.packMessages {
			cut()
		}
	}
	cut()
	return trains
}

// fail makes err the result of the groups of items.
func (c *call) fail(items []item, err error) {
	for _, i := range items {
		c.results[i.group].Err = err
	}
}

func (c *call) failed(i item) bool { return c.results[i.group].Err != nil }

func (c *call) message(i item) *relay.Message { return &c.groups[i.group].Messages[i.message] }

// sender sends trains, one batch after the other.
type sender struct {
	*call
	enc encoder
}

// send sends trains until none is left.
func (s *sender) send(ctx context.Context, trains [][]item) {
	for n := s.next.Add(1); n <= int64(len(trains)); n = s.next.Add(1) {
		select {
		case s.publisher.slots <- struct{}{}:
			s.deliver(ctx, trains[n-1])
			<-s.publisher.slots
		case <-ctx.Done():
			s.fail(trains[n-1], relay.Ended(ctx))
		}
	}
}

// deliver sends the messages of queue in their order, in as few batches as they fit
// into. A failure ends the keys of its batch; the others go on.
func (s *sender) deliver(ctx context.Context, queue []item) {
	for len(queue) > 0 {
		if s.failed(queue[0]) {
			queue = queue[1:]
			continue
		}
		n, err := s.sendFront(ctx, queue)
		switch tried := queue[:n]; {
		case err == nil:
			for _, i := range tried {
				s.results[i.group].Sent++
			}
		case relay.ClassOf(err) == relay.Refused && n > 1:
			s.divide(ctx, tried)
		default:
			s.fail(tried, err)
		}
		queue = queue[n:]
	}
}

// divide sends a refused batch again in smaller pieces: by key if it had several, else
// message by message. What stands before the refused message is accepted, what stands
// behind it in its key is not tried.
func (s *sender) divide(ctx context.Context, refused []item) {
	keys := keysOf(refused)
	for rest := refused; len(rest) > 0; {
		n := 1
		for keys > 1 && n < len(rest) && rest[n].group == rest[0].group {
			n++
		}
		s.deliver(ctx, rest[:n])
		rest = rest[n:]
	}
	if keys > 1 && !slices.ContainsFunc(refused, s.failed) && s.publisher.unpacked.CompareAndSwap(false, true) {
		s.publisher.opts.Logger.WarnContext(ctx, "the entity refuses batches of several keys; sending a batch per key from now on",
			"keys", keys)
	}
}

func keysOf(items []item) int {
	keys := 1
	for n := 1; n < len(items); n++ {
		if items[n].group != items[n-1].group {
			keys++
		}
	}
	return keys
}

// sendFront sends what fits into one batch from the front of queue. It returns how many
// messages it tried.
func (s *sender) sendFront(ctx context.Context, queue []item) (tried int, err error) {
	if err := s.connect(ctx); err != nil {
		return 1, err
	}
	attempt, cancel := context.WithTimeout(ctx, s.publisher.opts.limits.sendTimeout)
	defer cancel()
	if len(queue) > 1 {
		b, err := s.publisher.link.newBatch(attempt)
		if err != nil {
			return 1, classify(ctx, attempt, err)
		}
		n, err := s.fill(b, queue)
		if n > 0 {
			return n, s.transmit(ctx, attempt, b, nil, queue[:n])
		}
		if !errors.Is(err, azservicebus.ErrMessageTooLarge) { // outside of a batch another limit holds
			return 1, err
		}
	}
	m := s.message(queue[0])
	if err := check(m); err != nil {
		return 1, err
	}
	return 1, s.transmit(ctx, attempt, nil, s.enc.encode(m, s.publisher.source, false), queue[:1])
}

// fill adds messages from the front of queue to b until it is full. It returns how many,
// and why the next could not be added: ErrMessageTooLarge, or a Refused error.
func (s *sender) fill(b batch, queue []item) (n int, err error) {
	for ; n < min(len(queue), s.publisher.opts.limits.batchMessages); n++ {
		m := s.message(queue[n])
		if err := check(m); err != nil {
			return n, err
		}
		err := b.AddAMQPAnnotatedMessage(s.enc.encode(m, s.publisher.source, n == 0), nil) // keeps parts of the first
		switch {
		case errors.Is(err, azservicebus.ErrMessageTooLarge):
			return n, err
		case err != nil:
			return n, &relay.Error{Class: relay.Refused, Reason: "malformed", Err: err}
		}
	}
	return n, nil
}

// connect opens the link. It takes some 15 round trips, so it has a limit of its own. One
// try that fails is enough for all groups of a call.
func (s *sender) connect(ctx context.Context) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	if err := s.cutOff.Load(); err != nil {
		return *err
	}
	opening, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err := s.publisher.link.open(opening)
	if err != nil {
		err = classify(ctx, opening, err)
		s.cutOff.CompareAndSwap(nil, &err)
	}
	return err
}

// connectTimeout bounds one try to connect, which a send that needs it waits for first.
const connectTimeout = 30 * time.Second

// transmit sends b, or without a batch m, which costs the client a third of a batch of
// one. It is the one place where a send starts.
func (s *sender) transmit(ctx, attempt context.Context, b batch, m *azservicebus.AMQPAnnotatedMessage, items []item) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	failpoint.Here("send")
	began := time.Now()
	err := s.publisher.link.send(attempt, b, m)
	if err != nil {
		err = classify(ctx, attempt, err)
	} else {
		failpoint.Here("sent")
	}
	if sent := s.publisher.opts.Sent; sent != nil {
		sent(ctx, relay.BatchReport{Keys: keysOf(items), Messages: len(items), Took: time.Since(began), Err: err})
	}
	return err
}
