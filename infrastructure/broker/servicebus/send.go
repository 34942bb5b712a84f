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

// call is one Publish call. Its messages are split into chunks, which are sent concurrently. The
// messages of a chunk are sent in order, one batch at a time.
type call struct {
	publisher  *Publisher
	groups     []relay.Group
	results    []relay.KeyError      // by group; only the sender of its chunk writes it
	next       atomic.Int64          // number of chunks taken by senders
	connectErr atomic.Pointer[error] // of the first failed attempt to connect
}

// item is a message of a group.
type item struct{ group, message int }

// split returns one chunk per key, or with pack chunks of at least packMessages messages. A key is never
// in two chunks, because its batches must be sent one after the other.
func (c *call) split(pack bool) (chunks [][]item) {
	var items []item
	first := 0 // of the current chunk
	cut := func() {
		if len(items) > first {
			chunks, first = append(chunks, items[first:]), len(items)
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
	return chunks
}

func (c *call) fail(items []item, err error) {
	for _, i := range items {
		c.results[i.group].Err = err
	}
}

func (c *call) failed(i item) bool { return c.results[i.group].Err != nil }

func (c *call) message(i item) *relay.Message { return &c.groups[i.group].Messages[i.message] }

// sender sends chunks, one batch after the other.
type sender struct {
	*call
	enc encoder
}

func (s *sender) send(ctx context.Context, chunks [][]item) {
	for n := s.next.Add(1); n <= int64(len(chunks)); n = s.next.Add(1) {
		select {
		case s.publisher.slots <- struct{}{}:
			s.deliver(ctx, chunks[n-1])
			<-s.publisher.slots
		case <-ctx.Done():
			s.fail(chunks[n-1], relay.Ended(ctx))
		}
	}
}

// deliver sends the messages of queue in order, in as few batches as possible. A failure stops the keys
// of its batch and no others.
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

// divide sends a refused batch again in smaller batches: one per key if it had several keys, otherwise
// one per message. Messages before the refused one are accepted, and later ones of its key are not sent.
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
		s.publisher.opts.Logger.WarnContext(ctx, "key packing disabled: entity refuses batches of several keys",
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

// sendFront sends one batch from the front of queue. It returns the number of messages in the batch.
func (s *sender) sendFront(ctx context.Context, queue []item) (n int, err error) {
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
	m := s.message(queue[0]) // a single message may be larger than a batch
	if err := check(m); err != nil {
		return 1, err
	}
	return 1, s.transmit(ctx, s.enc.encode(m, s.publisher.source), queue[:1])
}

// fill adds messages from the front of queue to b until one does not fit or is invalid. It returns the
// number of added messages.
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

// connect opens the link. After one failed attempt it returns the same error for all groups of the call.
// That attempt is reported, because no batch will be: without the report a missing topic looks like an idle
// relay.
func (s *sender) connect(ctx context.Context) (maxBatch int, err error) {
	if err := relay.Ended(ctx); err != nil {
		return 0, err
	}
	if err := s.connectErr.Load(); err != nil {
		return 0, *err
	}
	began := time.Now()
	maxBatch, err = s.publisher.connect(ctx)
	if err != nil && s.connectErr.CompareAndSwap(nil, &err) {
		s.report(ctx, relay.BatchReport{Took: time.Since(began), Err: err})
	}
	return maxBatch, err
}

func (s *sender) report(ctx context.Context, r relay.BatchReport) {
	if sent := s.publisher.opts.Sent; sent != nil {
		sent(ctx, r)
	}
}

// transmit sends m, which is a message or a batch of items. If the link had ended, transmit attaches
// again and retries once, because the broker detaches idle links.
func (s *sender) transmit(ctx context.Context, m *amqp.Message, items []item) error {
	began := time.Now()
	err := s.try(ctx, m)
	if linkHadEnded(err) {
		if _, err = s.connect(ctx); err == nil {
			err = s.try(ctx, m)
		}
	}
	r := relay.BatchReport{Keys: keysOf(items), Messages: len(items), Took: time.Since(began), Err: err}
	if err == nil {
		r.Accepted = len(items)
	}
	s.report(ctx, r)
	return err
}

// try makes one attempt. All sends start here.
func (s *sender) try(ctx context.Context, m *amqp.Message) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	attempt, cancel := context.WithTimeoutCause(ctx, s.publisher.opts.limits.sendTimeout, errUnanswered)
	defer cancel()
	failpoint.Here("send")
	if err := s.publisher.link.send(attempt, m); err != nil {
		return classify(ctx, attempt, err)
	}
	failpoint.Here("sent")
	return nil
}
