package rabbitmq

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/failpoint"
)

// channel is a channel in confirm mode. One call uses it at a time.
type channel struct {
	*amqp.Channel
	session  *session
	confirms chan amqp.Confirmation // in the order of the messages
	returns  chan amqp.Return       // that of a message is here before its confirmation
	ends     chan *amqp.Error
	ended    *amqp.Error // what came out of ends
}

// open opens a channel, at first the connection.
func (p *Publisher) open(ctx context.Context) (*channel, error) {
	s, err := p.client.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, s.socket.abort)()
	raw, err := s.Channel()
	if err != nil {
		return nil, err
	}
	ch := &channel{Channel: raw, session: s}
	// What the client tells must never wait for us: it would hold up its whole connection.
	ch.confirms = raw.NotifyPublish(make(chan amqp.Confirmation, p.opts.Window))
	ch.returns = raw.NotifyReturn(make(chan amqp.Return, p.opts.Window))
	ch.ends = raw.NotifyClose(make(chan *amqp.Error, 1))
	return ch, raw.Confirm(false)
}

// discard closes a channel that shall not be used again, without waiting for the broker's answer:
// Client.Close does.
func (c *channel) discard() {
	c.session.client.running.Go(func() { _ = c.Close() }) // it ends with the connection at the latest
}

// sending is a part of a call: groups that go over one channel. Each group has one message
// unconfirmed at a time; the faults are where it stands.
type sending struct {
	publisher *Publisher
	groups    []relay.Group
	faults    []relay.KeyError
	flying    []int // groups with an unconfirmed message, in the order of these
	returned  map[string]bool
	tried     int
	writing   atomic.Bool
}

// run sends the groups of part. It reports whether the channel has told all that it owes.
func (s *sending) run(ctx context.Context, ch *channel, part []int) (settled bool) {
	ready := append(make([]int, 0, len(part)), part...)
	timer := time.NewTimer(s.publisher.opts.SendTimeout)
	defer timer.Stop()
	defer context.AfterFunc(ctx, func() { // a write knows no context
		if s.writing.Load() {
			ch.session.socket.abort()
		}
	})()
	for {
		ready = s.fill(ctx, ch, ready)
		if len(s.flying) == 0 {
			return true
		}
		timer.Reset(s.publisher.opts.SendTimeout)
		select {
		case c, open := <-ch.confirms:
			for more := true; more; { // what is confirmed together is followed together
				if !open {
					s.failAll(append(s.flying, ready...), broken(ch.end(), len(s.flying)))
					return false
				}
				g := s.flying[0]
				s.flying = s.flying[1:]
				if s.confirm(ch, g, c.Ack) {
					ready = append(ready, g)
				}
				select {
				case c, open = <-ch.confirms:
				default:
					more = false
				}
			}
		case <-timer.C:
			s.failAll(append(s.flying, ready...), timedOut.of(errors.New("the broker has not confirmed the message")))
			return false
		case <-ctx.Done():
			s.failAll(append(s.flying, ready...), relay.Ended(ctx))
			return false
		}
	}
}

// fill publishes the next messages of groups that are ready, as many as the window has room
// for, and returns the groups that still are.
func (s *sending) fill(ctx context.Context, ch *channel, ready []int) []int {
	if len(ready) == 0 || len(s.flying) >= s.publisher.opts.Window {
		return ready
	}
	s.writing.Store(true)
	defer s.writing.Store(false)
	defer ch.session.socket.burst()()
	for len(ready) > 0 && len(s.flying) < s.publisher.opts.Window {
		g := ready[0]
		ready = ready[1:]
		if s.faults[g].Sent == len(s.groups[g].Messages) {
			continue
		}
		if s.faults[g].Err = s.publish(ctx, ch, g); s.faults[g].Err == nil {
			s.flying = append(s.flying, g)
		}
	}
	return ready
}

// publish sends the next message of a group. It is the one place where a send starts.
func (s *sending) publish(ctx context.Context, ch *channel, g int) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	m := &s.groups[g].Messages[s.faults[g].Sent]
	if err := s.publisher.check(m); err != nil {
		return err
	}
	if reason := ch.session.blocked.Load(); reason != nil {
		return blocked.of(errors.New("the broker takes nothing for now: " + *reason))
	}
	failpoint.Here("send")
	s.tried++
	err := ch.Publish(s.publisher.exchange, slotNames[Slot(m.Key)], true, false, publishing(m, s.publisher.opts.Source))
	if err == nil {
		return nil
	}
	if over := relay.Ended(ctx); over != nil {
		return over
	}
	if errors.Is(err, amqp.ErrClosed) { // the broker has closed it, for an earlier message or none
		return broken(ch.end(), len(s.flying)+1)
	}
	return lost.of(err)
}

// confirm notes the answer to the unconfirmed message of a group. It reports whether the
// group's next message may go.
func (s *sending) confirm(ch *channel, g int, ack bool) bool {
	for more := true; more; {
		select {
		case r := <-ch.returns:
			if s.returned == nil {
				s.returned = make(map[string]bool)
			}
			s.returned[r.MessageId] = true
		default:
			more = false
		}
	}
	switch id := s.groups[g].Messages[s.faults[g].Sent].ID; {
	case !ack:
		s.faults[g].Err = refusedByQueue.of(errors.New("the broker did not take the message: a queue is full or cannot store it"))
	case s.returned[id]:
		s.faults[g].Err = returned.of(errors.New("no queue is bound for the message"))
	default:
		failpoint.Here("sent")
		s.faults[g].Sent++
		return true
	}
	return false
}

// end returns why the channel was closed, nil if nobody said.
func (c *channel) end() *amqp.Error {
	if c.ended != nil {
		return c.ended
	}
	select {
	case c.ended = <-c.ends:
	case <-time.After(time.Second): // it is told right after the confirmations end
	}
	return c.ended
}

// failAll makes err the fault of groups that have none.
func (s *sending) failAll(groups []int, err error) {
	for _, g := range groups {
		if s.faults[g].Err == nil && s.faults[g].Sent < len(s.groups[g].Messages) {
			s.faults[g].Err = err
		}
	}
}

func (s *sending) report(part []int, took time.Duration) relay.BatchReport {
	r := relay.BatchReport{Keys: len(part), Messages: s.tried, Took: took}
	for _, g := range part {
		if r.Err == nil {
			r.Err = s.faults[g].Err
		}
	}
	return r
}
