package servicebus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/application/relay"
	"feedbox/infrastructure/failpoint"
)

// sender sends the trains of one worker, one batch after the other.
type sender struct {
	call  *call
	link  link
	enc   encoder
	parts []part // of the batch that is being filled
	queue []part
}

// part is the messages from first up to, not including, end of a group.
type part struct{ group, first, end int }

func (s *sender) prepare(c *call) {
	s.call = c
	if !c.publisher.opts.OmitCloudEvents {
		s.enc.source = c.publisher.opts.Source
	}
}

// send sends the groups of t and records what became of each.
func (s *sender) send(ctx context.Context, t train) {
	s.queue = s.queue[:0]
	for g := t.first; g < t.end; g++ {
		s.queue = append(s.queue, part{group: g, end: len(s.call.groups[g].Messages)})
	}
	s.deliver(ctx, s.queue)
}

// deliver sends the messages of queue in their order, in as few batches as they fit
// into. It drops the parts of a group that has failed.
func (s *sender) deliver(ctx context.Context, queue []part) {
	for len(queue) > 0 {
		if s.call.results[queue[0].group].Err != nil {
			queue = queue[1:]
			continue
		}
		if reason := s.call.halted.Load(); reason != nil {
			s.fail(queue, *reason, true)
			return
		}
		var err error
		queue, err = s.sendFront(ctx, queue)
		switch {
		case err == nil:
			for _, p := range s.parts {
				s.call.results[p.group].Sent += p.end - p.first
			}
		case relay.ClassOf(err) == relay.Refused && s.divisible():
			s.divide(ctx)
		default:
			if relay.ClassOf(err) != relay.Refused {
				s.call.halted.CompareAndSwap(nil, &err)
			}
			s.fail(s.parts, err, false)
		}
	}
}

// sendFront sends what fits into one batch from the front of queue and returns the
// rest. s.parts tells what it tried.
func (s *sender) sendFront(ctx context.Context, queue []part) ([]part, error) {
	o := &s.call.publisher.opts
	s.parts = append(s.parts[:0], part{group: queue[0].group, first: queue[0].first, end: queue[0].first + 1})
	if err := s.connect(ctx); err != nil {
		return queue, err
	}
	attempt, cancel := within(ctx, o.SendTimeout)
	defer cancel()
	if len(queue) == 1 && queue[0].end-queue[0].first == 1 {
		if err := check(s.message(queue[0])); err != nil {
			return queue, err
		}
		return nil, s.sendAlone(ctx, attempt)
	}
	b, err := s.link.newBatch(attempt)
	if err != nil {
		return queue, classify(ctx, attempt, err)
	}
	rest, count, err := s.fill(b, queue)
	switch {
	case errors.Is(err, azservicebus.ErrMessageTooLarge): // outside of a batch another limit holds
		return advance(queue), s.sendAlone(ctx, attempt)
	case err != nil:
		return queue, err
	case closed(ctx):
		return queue, fmt.Errorf("send: %w", context.DeadlineExceeded)
	}
	failpoint.Here("send")
	began := time.Now()
	err = s.link.sendBatch(attempt, b)
	if err != nil {
		err = classify(ctx, attempt, err)
	} else {
		failpoint.Here("sent")
	}
	if o.Sent != nil {
		o.Sent(ctx, BatchReport{Keys: len(s.parts), Messages: count, Bytes: int(b.NumBytes()), Took: time.Since(began), Err: err})
	}
	return rest, err
}

// connect opens the link. It takes some 15 round trips, so it has a limit of its own.
func (s *sender) connect(ctx context.Context) error {
	opening, cancel := within(ctx, s.call.publisher.opts.ConnectTimeout)
	defer cancel()
	if err := s.link.open(opening); err != nil {
		return classify(ctx, opening, err)
	}
	return nil
}

// within bounds ctx, unless d is negative.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d < 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// sendAlone sends the message in s.parts outside of a batch, which costs the client a
// third of a batch of one.
func (s *sender) sendAlone(ctx, attempt context.Context) error {
	m := s.message(s.parts[0])
	if closed(ctx) {
		return fmt.Errorf("send: %w", context.DeadlineExceeded)
	}
	failpoint.Here("send")
	began := time.Now()
	err := s.link.sendOne(attempt, s.enc.next(m))
	if err != nil {
		err = classify(ctx, attempt, err)
	} else {
		failpoint.Here("sent")
	}
	if sent := s.call.publisher.opts.Sent; sent != nil {
		sent(ctx, BatchReport{Keys: 1, Messages: 1, Bytes: len(m.Body), Took: time.Since(began), Err: err})
	}
	return err
}

// closed reports whether the deadline of ctx has passed. The timer behind ctx.Done may
// fire late after the process stood still, and the fence must hold then above all.
func closed(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// fill adds messages from the front of queue to b until it is full, notes them in
// s.parts and returns the rest and the count. If not even the first can be added, the
// error says why: ErrMessageTooLarge, or a Refused error.
func (s *sender) fill(b batch, queue []part) ([]part, int, error) {
	o := &s.call.publisher.opts
	count := 0
	s.parts = s.parts[:0]
	for i, p := range queue {
		if s.call.results[p.group].Err != nil {
			continue
		}
		taken := part{group: p.group, first: p.first, end: p.first}
		for taken.end < p.end {
			err := s.add(b, taken, count == 0)
			if count == 0 && err != nil {
				s.parts = append(s.parts, part{group: p.group, first: p.first, end: p.first + 1})
				return queue, 0, err
			}
			if err == nil {
				count++
				taken.end++
			}
			if err != nil || count == o.MaxBatchMessages {
				return s.rest(queue[i:], taken), count, nil //nolint:nilerr // the message that does not fit opens the next batch
			}
		}
		s.parts = append(s.parts, taken)
	}
	return nil, count, nil
}

// rest notes taken, if it has messages, and returns queue behind it.
func (s *sender) rest(queue []part, taken part) []part {
	if taken.end > taken.first {
		s.parts = append(s.parts, taken)
	}
	if queue[0].first = taken.end; queue[0].first == queue[0].end {
		return queue[1:]
	}
	return queue
}

// advance returns queue behind its first message.
func advance(queue []part) []part {
	if queue[0].first++; queue[0].first == queue[0].end {
		return queue[1:]
	}
	return queue
}

// add encodes the message at the end of taken into b.
func (s *sender) add(b batch, taken part, first bool) error {
	o := &s.call.publisher.opts
	m := &s.call.groups[taken.group].Messages[taken.end]
	if err := check(m); err != nil {
		return err
	}
	if !first && int(b.NumBytes())+sizeBound(m, len(o.Source)) > o.MaxBatchBytes {
		return azservicebus.ErrMessageTooLarge
	}
	encoded := s.enc.next
	if first {
		encoded = s.enc.envelope
	}
	err := b.AddAMQPAnnotatedMessage(encoded(m), nil)
	if err != nil && !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		return &relay.Error{Class: relay.Refused, Reason: "malformed", Err: err}
	}
	return err
}

func (s *sender) message(p part) *relay.Message {
	return &s.call.groups[p.group].Messages[p.first]
}

// fail records err for the groups of parts.
func (s *sender) fail(parts []part, err error, untried bool) {
	for _, p := range parts {
		if r := &s.call.results[p.group]; r.Err == nil {
			r.Err, r.Untried = err, untried
		}
	}
}
