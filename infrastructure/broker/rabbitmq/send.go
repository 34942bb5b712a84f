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

// channel is a channel in confirm mode. One call at a time uses it.
type channel struct {
	raw
	session  *session
	confirms chan amqp.Confirmation // in the order of the messages
	returns  chan amqp.Return       // a message is returned before it is confirmed
	ends     chan *amqp.Error       // has the error before confirms is closed
}

// raw contains the methods of *amqp.Channel that a sender uses.
type raw interface {
	Publish(exchange, key string, mandatory, immediate bool, m amqp.Publishing) error
	IsClosed() bool
	Close() error
}

// open opens a channel, and the connection if necessary.
func (p *Publisher) open(ctx context.Context) (ch *channel, err error) {
	s, err := p.client.connect(ctx)
	if err == nil {
		err = s.alarm.err()
	}
	if err != nil {
		if s != nil {
			err = blocked.Wrap(err)
		}
		return nil, err
	}
	err = p.client.open(ctx, requestTimeout, func(s *session, raw *amqp.Channel) error {
		// The buffers must hold all notifications, because a full one blocks the whole connection.
		ch = &channel{
			raw: raw, session: s, confirms: raw.NotifyPublish(make(chan amqp.Confirmation, p.opts.Window)),
			returns: raw.NotifyReturn(make(chan amqp.Return, p.opts.Window)), ends: raw.NotifyClose(make(chan *amqp.Error, 1)),
		}
		return raw.Confirm(false)
	})
	return ch, err
}

// discard closes a channel without waiting for the reply of the broker. During an alarm, there is none
// until the alarm is cleared or the connection ends. Client.Close waits for it.
func (c *channel) discard() {
	c.session.client.running.Go(func() {
		_, cleared := c.session.alarm.channels()
		<-cleared
		c.session.closeChannel(c)
	})
}

// sender sends the groups of a call that share a channel. Each group has events in at most one
// unconfirmed message.
type sender struct {
	publisher   *Publisher
	groups      []relay.Group
	packer      packer
	results     []relay.KeyError // by group; Sent is the number of confirmed events
	unconfirmed []parcel         // in the order of sending
	returned    map[string]bool  // by message id
	attempted   int              // events
	writing     atomic.Bool
}

// run sends the groups of part. It reports whether all messages have been confirmed or returned, so
// that the channel can be used again.
func (s *sender) run(ctx context.Context, ch *channel, part []int) (settled bool) {
	ready := append(make([]int, 0, len(part)), part...)
	timer := time.NewTimer(s.publisher.opts.SendTimeout)
	defer timer.Stop()
	defer context.AfterFunc(ctx, func() { // a write takes no context
		if s.writing.Load() {
			ch.session.socket.abort()
		}
	})()
	for {
		ready = s.fill(ctx, ch, ready)
		if len(s.unconfirmed)+len(ready) == 0 {
			return true
		}
		timer.Reset(s.publisher.opts.SendTimeout)
		raised, _ := ch.session.alarm.channels()
		var err error
		select {
		case c, open := <-ch.confirms:
			if open {
				ready = s.confirm(ch, c, ready)
				for len(ch.confirms) > 0 { // confirmed together, so that the next messages are one write
					ready = s.confirm(ch, <-ch.confirms, ready)
				}
				continue
			}
			err = channelError(<-ch.ends, s.unconfirmedEvents())
		case <-timer.C:
			err = timedOut.Wrap(errors.New("the broker did not confirm the message in time"))
			s.noteTimeout(ctx, ch.session)
		case <-raised: // alarm.err may be nil again, so both have a reason of their own
			s.failAll(ready, blocked.Wrap(errAlarm))
			err = overtaken.Wrap(errAlarm)
		case <-ctx.Done():
			err = relay.Ended(ctx)
		}
		for i := range s.unconfirmed {
			for _, part := range s.unconfirmed[i].shares {
				ready = append(ready, part.group)
			}
		}
		s.failAll(ready, err)
		return false
	}
}

// unconfirmedEvents counts events, not messages, because a broker that refuses a packed message does not say
// which of its events is the cause.
func (s *sender) unconfirmedEvents() (n int) {
	for i := range s.unconfirmed {
		n += s.unconfirmed[i].events
	}
	return n
}

// maxUnanswered is the number of timeouts without a confirmation in between after which the connection
// is replaced. Each timeout replaces its channel.
const maxUnanswered = 2

// noteTimeout counts a timeout of sends on a connection, and closes it after maxUnanswered.
func (s *sender) noteTimeout(ctx context.Context, on *session) {
	if on.unanswered.Add(1) == maxUnanswered {
		s.publisher.opts.Logger.WarnContext(ctx, "connection replaced: messages not confirmed",
			"exchange", s.publisher.exchange, "timeouts", maxUnanswered)
		on.socket.abort()
	}
}

// fill publishes the next messages of ready groups until the window is full, and returns the groups
// that remain ready. It must not block, because the burst holds back writes of other channels. If the
// channel has ended, run receives the reason.
func (s *sender) fill(ctx context.Context, ch *channel, ready []int) []int {
	if len(ready) == 0 || len(s.unconfirmed) >= s.publisher.opts.Window {
		return ready
	}
	s.writing.Store(true)
	defer s.writing.Store(false)
	defer ch.session.socket.burst()()
	for len(ready) > 0 && len(s.unconfirmed) < s.publisher.opts.Window {
		p, left := s.next(ready)
		if p.events > 0 {
			switch err := s.publish(ctx, ch, &p); {
			case errors.Is(err, amqp.ErrClosed):
				return ready
			case err == nil:
				s.unconfirmed = append(s.unconfirmed, p)
			default:
				for _, part := range p.shares {
					s.results[part.group].Err = err
				}
			}
		}
		ready = left
	}
	return ready
}

// publish sends a message. All sends start here.
func (s *sender) publish(ctx context.Context, ch *channel, p *parcel) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	if err := ch.session.alarm.err(); err != nil {
		return blocked.Wrap(err)
	}
	failpoint.Here("send")
	s.attempted += p.events
	err := ch.Publish(s.publisher.exchange, slotNames[p.slot], true, false, s.encode(p))
	if err == nil || errors.Is(err, amqp.ErrClosed) {
		return err
	}
	if ended := relay.Ended(ctx); ended != nil {
		return ended
	}
	return connectionLost.Wrap(err)
}

// confirm applies a confirmation to the first unconfirmed message. It appends its groups to ready if their
// next events may be sent.
func (s *sender) confirm(ch *channel, c amqp.Confirmation, ready []int) []int {
	for len(ch.returns) > 0 {
		s.returned[(<-ch.returns).MessageId] = true
	}
	ch.session.unanswered.Store(0)
	p := s.unconfirmed[0]
	s.unconfirmed = s.unconfirmed[1:]
	var err error
	switch {
	case !c.Ack:
		err = refusedByQueue.Wrap(errors.New("the broker refused the message: a queue is full or cannot store it"))
	case s.returned[p.id]:
		err = returned.Wrap(errors.New("no queue is bound for the message"))
	default:
		failpoint.Here("sent")
	}
	for _, part := range p.shares {
		if err != nil {
			s.results[part.group].Err = err
			continue
		}
		s.results[part.group].Sent += part.events
		ready = append(ready, part.group)
	}
	return ready
}

// failAll sets err for unfinished groups without an error.
func (s *sender) failAll(groups []int, err error) {
	for _, g := range groups {
		if s.results[g].Err == nil && s.results[g].Sent < len(s.groups[g].Messages) {
			s.results[g].Err = err
		}
	}
}
