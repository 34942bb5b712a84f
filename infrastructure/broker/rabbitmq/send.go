package rabbitmq

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/process/failpoint"
)

// channel is a channel in confirm mode. One call uses it at a time.
type channel struct {
	raw
	session  *session
	confirms chan amqp.Confirmation // in the order of the messages
	returns  chan amqp.Return       // that of a message is here before its confirmation
	ends     chan *amqp.Error       // told before the confirmations end
}

// raw is what is used of an *amqp.Channel.
type raw interface {
	Publish(exchange, key string, mandatory, immediate bool, m amqp.Publishing) error
	IsClosed() bool
	Close() error
}

// open opens a channel, at first the connection.
func (p *Publisher) open(ctx context.Context) (ch *channel, err error) {
	err = p.client.open(ctx, func(s *session, raw *amqp.Channel) error {
		// What the client tells must never wait for us: it would hold up its whole connection.
		ch = &channel{
			raw: raw, session: s, confirms: raw.NotifyPublish(make(chan amqp.Confirmation, p.opts.Window)),
			returns: raw.NotifyReturn(make(chan amqp.Return, p.opts.Window)), ends: raw.NotifyClose(make(chan *amqp.Error, 1)),
		}
		return raw.Confirm(false)
	})
	return ch, err
}

// discard closes a channel that shall not be used again, without waiting for the broker's answer:
// Client.Close does.
func (c *channel) discard() {
	c.session.client.running.Go(func() { _ = c.Close() }) // it ends with the connection at the latest
}

// sender sends a part of a call: groups that go over one channel. Each group has one message
// unconfirmed at a time; the faults are where it stands.
type sender struct {
	publisher *Publisher
	groups    []relay.Group
	faults    []relay.KeyError
	flying    []int // groups with an unconfirmed message, in the order of these
	returned  map[string]bool
	tried     int
	writing   atomic.Bool
}

// run sends the groups of part. It reports whether the channel has told all that it owes.
func (s *sender) run(ctx context.Context, ch *channel, part []int) (settled bool) {
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
		if len(s.flying)+len(ready) == 0 {
			return true
		}
		timer.Reset(s.publisher.opts.SendTimeout)
		var err error
		select {
		case c, open := <-ch.confirms:
			if open {
				ready = s.confirm(ch, c, ready)
				for len(ch.confirms) > 0 { // what is confirmed together is followed together
					ready = s.confirm(ch, <-ch.confirms, ready)
				}
				continue
			}
			err = broken(<-ch.ends, len(s.flying))
		case <-timer.C:
			err = timedOut.Of(errors.New("the broker has not confirmed the message"))
		case <-ctx.Done():
			err = relay.Ended(ctx)
		}
		s.failAll(append(s.flying, ready...), err)
		return false
	}
}

// fill publishes the next messages of groups that are ready, as many as the window has room
// for, and returns the groups that still are. Others write behind the burst, so nothing is
// waited for here: why a channel has ended is told where confirmations are awaited.
func (s *sender) fill(ctx context.Context, ch *channel, ready []int) []int {
	if len(ready) == 0 || len(s.flying) >= s.publisher.opts.Window {
		return ready
	}
	s.writing.Store(true)
	defer s.writing.Store(false)
	defer ch.session.socket.burst()()
	for len(ready) > 0 && len(s.flying) < s.publisher.opts.Window {
		g := ready[0]
		if s.faults[g].Sent < len(s.groups[g].Messages) {
			switch err := s.publish(ctx, ch, g); {
			case errors.Is(err, amqp.ErrClosed):
				return ready
			case err == nil:
				s.flying = append(s.flying, g)
			default:
				s.faults[g].Err = err
			}
		}
		ready = ready[1:]
	}
	return ready
}

// publish sends the next message of a group. It is the one place where a send starts.
func (s *sender) publish(ctx context.Context, ch *channel, g int) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	m := &s.groups[g].Messages[s.faults[g].Sent]
	if err := s.publisher.check(m); err != nil {
		return err
	}
	if reason := ch.session.blocked.Load(); reason != nil {
		return blocked.Of(errors.New("the broker takes nothing for now: " + *reason))
	}
	failpoint.Here("send")
	s.tried++
	err := ch.Publish(s.publisher.exchange, slotNames[Slot(m.Key)], true, false, publishing(m, s.publisher.opts.Source))
	if err == nil || errors.Is(err, amqp.ErrClosed) {
		return err
	}
	if over := relay.Ended(ctx); over != nil {
		return over
	}
	return lost.Of(err)
}

// confirm notes the answer to the first unconfirmed message. It adds its group to those that are
// ready if the next message may go.
func (s *sender) confirm(ch *channel, c amqp.Confirmation, ready []int) []int {
	for len(ch.returns) > 0 {
		s.returned[(<-ch.returns).MessageId] = true
	}
	g := s.flying[0]
	s.flying = s.flying[1:]
	switch {
	case !c.Ack:
		s.faults[g].Err = refusedByQueue.Of(errors.New("the broker did not take the message: a queue is full or cannot store it"))
	case s.returned[s.groups[g].Messages[s.faults[g].Sent].ID]:
		s.faults[g].Err = returned.Of(errors.New("no queue is bound for the message"))
	default:
		failpoint.Here("sent")
		s.faults[g].Sent++
		return append(ready, g)
	}
	return ready
}

// failAll makes err the fault of groups that have none.
func (s *sender) failAll(groups []int, err error) {
	for _, g := range groups {
		if s.faults[g].Err == nil && s.faults[g].Sent < len(s.groups[g].Messages) {
			s.faults[g].Err = err
		}
	}
}
