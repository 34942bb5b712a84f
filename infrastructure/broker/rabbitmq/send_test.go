package rabbitmq

import (
	"net"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
)

// ended is a channel that has ended.
type ended struct{}

func (ended) Publish(string, string, bool, bool, amqp.Publishing) error { return amqp.ErrClosed }
func (ended) IsClosed() bool                                            { return true }
func (ended) Close() error                                              { return amqp.ErrClosed }

// newSender returns a sender of two keys with a message each, and the channel that it uses.
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
	return &sender{publisher: p, groups: groups, faults: make([]relay.KeyError, 2), returned: map[string]bool{}}, ch
}

// TestABurstWaitsForNothing: others write behind it, so what an ended channel has to tell is
// awaited later.
func TestABurstWaitsForNothing(t *testing.T) {
	t.Parallel()
	s, ch := newSender(t)
	if ready := s.fill(t.Context(), ch, []int{0, 1}); len(ready) != 2 || len(s.flying) != 0 || s.faults[0].Err != nil {
		t.Errorf("ready %v, unconfirmed %v, faults %v: something was decided before the channel has told why it ended", ready, s.flying, s.faults)
	}
	ch.ends <- &amqp.Error{Code: amqp.NotFound}
	close(ch.confirms)
	if s.run(t.Context(), ch, []int{0, 1}) {
		t.Error("a channel that has ended is used again")
	}
	for _, f := range s.faults {
		if relay.ReasonOf(f.Err) != "exchange_not_found" {
			t.Errorf("got %v", f.Err)
		}
	}
}

// TestConfirmedBeforeTheEnd: what the broker has confirmed counts, and what it has returned does
// not, although the channel has ended meanwhile.
func TestConfirmedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	s, ch := newSender(t)
	s.flying = []int{0, 1}
	ch.returns <- amqp.Return{MessageId: "2"}
	ch.confirms <- amqp.Confirmation{DeliveryTag: 1, Ack: true}
	ch.confirms <- amqp.Confirmation{DeliveryTag: 2, Ack: true}
	close(ch.returns)
	close(ch.confirms)
	ch.ends <- &amqp.Error{Code: amqp.ConnectionForced}
	s.run(t.Context(), ch, nil)
	if s.faults[0].Err != nil || s.faults[0].Sent != 1 {
		t.Errorf("the confirmed message: %+v", s.faults[0])
	}
	if s.faults[1].Sent != 0 || relay.ReasonOf(s.faults[1].Err) != "no_queue" {
		t.Errorf("the returned message: %+v", s.faults[1])
	}
}

// TestARefusalOfOneAmongOthers: nobody knows whose fault it is that a channel ended, unless one
// message was on it.
func TestARefusalOfOneAmongOthers(t *testing.T) {
	t.Parallel()
	end := &amqp.Error{Code: amqp.PreconditionFailed}
	for unconfirmed, want := range []relay.Class{relay.Outage, relay.Refused, relay.Outage} {
		if got := relay.ClassOf(broken(end, unconfirmed)); got != want {
			t.Errorf("%d unconfirmed: %v, want %v", unconfirmed, got, want)
		}
	}
}
