package servicebus

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
	"feedbox/infrastructure/process/failpoint"
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
	maxBatch, err := s.connect(ctx)
	if err != nil {
		return 1, err
	}
	if len(queue) > 1 {
		b := batch{max: maxBatch}
		if n := s.fill(&b, queue); n > 1 {
			return n, s.transmit(ctx, &b.envelope, queue[:n])
		}
	}
	m := s.message(queue[0]) // outside of a batch another limit holds
	if err := check(m); err != nil {
		return 1, err
	}
	return 1, s.transmit(ctx, s.enc.encode(m, s.publisher.source), queue[:1])
}

// fill adds messages from the front of queue to b until one does not fit, or could not be
// sent at all. It returns how many.
func (s *sender) fill(b *batch, queue []item) (n int) {
	for ; n < min(len(queue), s.publisher.opts.limits.batchMessages); n++ {
		m := s.message(queue[n])
		if check(m) != nil {
			break
		}
		encoded, err := s.enc.encode(m, s.publisher.source).MarshalBinary()
		if err != nil || !b.add(m, encoded) {
			break
		}
	}
	return n
}

// connect opens the link. One try that fails is enough for all groups of a call.
func (s *sender) connect(ctx context.Context) (maxBatch int, err error) {
	if err := relay.Ended(ctx); err != nil {
		return 0, err
	}
	if err := s.cutOff.Load(); err != nil {
		return 0, *err
	}
	maxBatch, err = s.publisher.connect(ctx)
	if err != nil {
		s.cutOff.CompareAndSwap(nil, &err)
	}
	return maxBatch, err
}

// transmit sends m, a message or a batch of items. If the link turns out to have ended,
// as one does that was idle, it is opened anew and m sent again, once.
func (s *sender) transmit(ctx context.Context, m *amqp.Message, items []item) error {
	began := time.Now()
	err := s.try(ctx, m)
	if sentInVain(err) {
		if _, err = s.connect(ctx); err == nil {
			err = s.try(ctx, m)
		}
	}
	if sent := s.publisher.opts.Sent; sent != nil {
		sent(ctx, relay.BatchReport{Keys: keysOf(items), Messages: len(items), Took: time.Since(began), Err: err})
	}
	return err
}

// try is the one place where a send starts.
func (s *sender) try(ctx context.Context, m *amqp.Message) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	attempt, cancel := context.WithTimeout(ctx, s.publisher.opts.limits.sendTimeout)
	defer cancel()
	failpoint.Here("send")
	if err := s.publisher.link.send(attempt, m); err != nil {
		return classify(ctx, attempt, err)
	}
	failpoint.Here("sent")
	return nil
}
