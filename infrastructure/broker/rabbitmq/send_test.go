package rabbitmq

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
)

// ended is a closed channel.
type ended struct{}

func (ended) Publish(string, string, bool, bool, amqp.Publishing) error { return amqp.ErrClosed }
func (ended) IsClosed() bool                                            { return true }
func (ended) Close() error                                              { return amqp.ErrClosed }

// newSender returns a sender of two keys with one message each, and a closed channel.
func newSender(t *testing.T) (*sender, *channel) {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	client, err := NewClient(Config{URL: "amqp://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPublisher(client, "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	groups := []relay.Group{{Key: "a", Messages: []relay.Message{{ID: "1", Key: "a"}}}, {Key: "b", Messages: []relay.Message{{ID: "2", Key: "b"}}}}
	ch := &channel{
		raw: ended{}, session: &session{client: client, socket: &socket{Conn: near}},
		confirms: make(chan amqp.Confirmation, 2), returns: make(chan amqp.Return, 2), ends: make(chan *amqp.Error, 1),
	}
	return &sender{publisher: p, groups: groups, results: make([]relay.KeyError, 2), returned: map[string]bool{}}, ch
}

// A burst must not block, because it holds back writes of other channels. The reason for the end of a
// channel is received after the burst.
func TestBurstDoesNotWaitForTheReasonOfAClosedChannel(t *testing.T) {
	t.Parallel()
	s, ch := newSender(t)
	if ready := s.fill(t.Context(), ch, []int{0, 1}); len(ready) != 2 || len(s.unconfirmed) != 0 || s.results[0].Err != nil {
		t.Errorf("ready %v, unconfirmed %v, results %v: a result was set before the reason was received", ready, s.unconfirmed, s.results)
	}
	ch.ends <- &amqp.Error{Code: amqp.NotFound}
	close(ch.confirms)
	if s.run(t.Context(), ch, []int{0, 1}) {
		t.Error("the closed channel would be used again")
	}
	for _, f := range s.results {
		if relay.ReasonOf(f.Err) != "exchange_not_found" {
			t.Errorf("got %v", f.Err)
		}
	}
}

// Confirmations and returns that arrived before the end of the channel count.
func TestConfirmationsBeforeTheEndOfTheChannelCount(t *testing.T) {
	t.Parallel()
	s, ch := newSender(t)
	s.unconfirmed = []int{0, 1}
	ch.returns <- amqp.Return{MessageId: "2"}
	ch.confirms <- amqp.Confirmation{DeliveryTag: 1, Ack: true}
	ch.confirms <- amqp.Confirmation{DeliveryTag: 2, Ack: true}
	close(ch.returns)
	close(ch.confirms)
	ch.ends <- &amqp.Error{Code: amqp.ConnectionForced}
	s.run(t.Context(), ch, nil)
	if s.results[0].Err != nil || s.results[0].Sent != 1 {
		t.Errorf("the confirmed message: %+v", s.results[0])
	}
	if s.results[1].Sent != 0 || relay.ReasonOf(s.results[1].Err) != "no_queue" {
		t.Errorf("the returned message: %+v", s.results[1])
	}
}

// The end of a channel fails only the groups that still have messages.
func TestEndOfAChannelFailsNoGroupThatIsConfirmed(t *testing.T) {
	t.Parallel()
	s, ch := newSender(t)
	s.groups[0].Messages = append(s.groups[0].Messages, relay.Message{ID: "3", Key: "a"})
	s.unconfirmed = []int{0, 1}
	ch.confirms <- amqp.Confirmation{DeliveryTag: 1, Ack: true}
	ch.confirms <- amqp.Confirmation{DeliveryTag: 2, Ack: true}
	close(ch.confirms)
	ch.ends <- &amqp.Error{Code: amqp.ConnectionForced}
	s.run(t.Context(), ch, nil)
	if r := s.results[0]; r.Sent != 1 || r.Err == nil {
		t.Errorf("the group with another message: %+v", r)
	}
	if r := s.results[1]; r.Sent != 1 || r.Err != nil {
		t.Errorf("the confirmed group: %+v", r)
	}
}

// unconfirmed accepts messages and confirms none. Its broker has not replied to the close yet.
type unconfirmed struct{ ended }

func (unconfirmed) Publish(string, string, bool, bool, amqp.Publishing) error { return nil }
func (unconfirmed) IsClosed() bool                                            { return false }

// A late confirmation would count for the first message of the next call.
func TestChannelWithoutAConfirmationIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	s, ch := newSender(t)
	ch.raw = unconfirmed{}
	p := s.publisher
	p.opts.SendTimeout = 10 * time.Millisecond
	for range p.opts.Channels {
		<-p.channels
	}
	p.channels <- ch
	failed, ok := errors.AsType[*relay.PublishError](p.Publish(t.Context(), s.groups))
	if !ok || relay.ReasonOf(failed.Keys[0].Err) != "send_timeout" {
		t.Errorf("got %v", failed)
	}
	if left := <-p.channels; left != nil {
		t.Error("the next call would use the channel")
	}
	ch.session.client.running.Wait()
}

// The broker closes a channel without saying which message it refused.
func TestChannelErrorRefusesOnlyASingleMessage(t *testing.T) {
	t.Parallel()
	end := &amqp.Error{Code: amqp.PreconditionFailed}
	for unconfirmed, want := range []relay.Class{relay.Outage, relay.Refused, relay.Outage} {
		if got := relay.ClassOf(channelError(end, unconfirmed)); got != want {
			t.Errorf("%d unconfirmed: %v, want %v", unconfirmed, got, want)
		}
	}
}

// wire records the sizes of writes.
type wire struct {
	net.Conn
	pieces []int
	err    error
	closed bool
}

func (w *wire) Write(b []byte) (int, error) {
	w.pieces = append(w.pieces, len(b))
	return len(b), w.err
}

func (w *wire) Close() error {
	w.closed = true
	return nil
}

func TestBurstIsWrittenAtItsEnd(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	w := &wire{Conn: near}
	s := &socket{Conn: w}
	write := func(n int, want ...int) {
		t.Helper()
		w.pieces = nil
		if _, err := s.Write(make([]byte, n)); err != nil {
			t.Error(err)
		}
		if len(w.pieces) != len(want) || len(want) > 0 && w.pieces[0] != want[0] {
			t.Errorf("wrote %v, want %v", w.pieces, want)
		}
	}
	write(10, 10)
	end := s.burst()
	write(10)
	write(20)
	write(maxBuffered, maxBuffered+30) // the buffer is full
	write(5)
	second := s.burst()
	write(6)
	end()
	if len(w.pieces) != 1 || w.pieces[0] != 11 {
		t.Errorf("the end of a burst wrote %v, want the buffered writes of all bursts", w.pieces)
	}
	write(7)
	second()
	write(8, 8)

	w.err = errors.New("cut")
	third := s.burst()
	write(9)
	third()
	if !w.closed {
		t.Error("the connection stays open after the buffer could not be written")
	}
}

// RabbitMQ 4 limits the deliveries of a queue without a limit. Earlier versions refuse the argument.
func TestDeliveryLimitOfTheBrokerIsDisabledWhereItExists(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"3.8.9": false, "3.13.7": false, "4.0.0": true, "4.2.1-rc.1": true, "10.0.0": true, "": false, "unknown": false} {
		if limitsDeliveries(version) != want {
			t.Errorf("version %q: %v, want %v", version, !want, want)
		}
	}
}

// unanswered is a channel whose broker replies to nothing. It counts the attempts to close it.
type unanswered struct {
	ended
	net.Conn
	closed *atomic.Int32
}

func (u unanswered) Close() error {
	u.closed.Add(1)
	_, err := u.Read(make([]byte, 1)) // until the connection is aborted
	return err
}

func TestAlarmDoesNotHoldTheEndOfAReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ch := newSender(t)
		var closed atomic.Int32
		ch.raw = unanswered{Conn: ch.session.socket, closed: &closed}
		ch.session.alarm.set("memory")
		ch.discard() // of a publisher, which waits
		time.Sleep(time.Hour)
		if closed.Load() != 0 {
			t.Error("the publisher asked a broker that does not reply, and so lost the connection")
		}
		time.AfterFunc(time.Hour, func() { ch.session.alarm.set("") })
		began := time.Now()
		ch.session.closeChannel(ch)
		if took := time.Since(began); took != requestTimeout || !ch.session.socket.aborted.Load() {
			t.Errorf("a receiver was held for %s", took)
		}
		ch.session.client.running.Wait()
		if n := closed.Load(); n != 2 {
			t.Errorf("%d of 2 channels were closed", n)
		}
	})
}

// SendTimeout bounds the wait for each confirmation, not that for all messages of a call.
func TestSlowConfirmationsAreNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ch := newSender(t)
		ch.raw = unconfirmed{}
		const messages = 20
		s.groups = []relay.Group{{Key: "a", Messages: make([]relay.Message, messages)}}
		ch.confirms = make(chan amqp.Confirmation, messages)
		var broker sync.WaitGroup
		defer broker.Wait()
		broker.Go(func() {
			for range messages {
				time.Sleep(s.publisher.opts.SendTimeout / 2)
				ch.confirms <- amqp.Confirmation{Ack: true}
			}
		})
		if !s.run(t.Context(), ch, []int{0}) || s.results[0].Sent != messages || s.results[0].Err != nil {
			t.Errorf("%+v, want %d messages sent", s.results[0], messages)
		}
	})
}

// A broker that reads nothing does not hold a write for ever.
func TestWriteEndsIfTheBrokerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer func() { _ = near.Close() }()
		defer time.AfterFunc(time.Hour, func() { _ = far.Close() }).Stop()
		began := time.Now()
		_, err := (&socket{Conn: near}).Write([]byte("message"))
		if took := time.Since(began); err == nil || took != writeTimeout {
			t.Errorf("%v after %v, want an error after %v", err, took, writeTimeout)
		}
	})
}

// The count of a letter is that of its own deliveries.
func TestDeadLetterHasNoDeliveriesOfItsEvent(t *testing.T) {
	t.Parallel()
	m := &amqp.Delivery{Headers: amqp.Table{headerDeliveryCount: int64(15), "action": "OrderPaid"}}
	if copied := copyOf(m).Headers; len(copied) != 1 || copied["action"] != "OrderPaid" || len(m.Headers) != 2 {
		t.Errorf("headers %v of %v", copied, m.Headers)
	}
}
