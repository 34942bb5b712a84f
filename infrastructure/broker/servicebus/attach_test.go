package servicebus

import (
	"testing"

	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
)

// TestAClosedLinkGivesItsPlaceBack: else each link that is attached anew takes one more.
func TestAClosedLinkGivesItsPlaceBack(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		l := newSenderLink(w.client, "contacts")
		a, err := l.shared.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		left, leave := 0, a.leave
		a.leave = func() { left++; leave() }
		if err := l.close(t.Context()); err != nil || left != 1 {
			t.Errorf("left its place %d times, error %v; want once", left, err)
		}
	})
}

// TestALinkMeetsAnEndedSession: its connection lives, and is replaced all the same.
func TestALinkMeetsAnEndedSession(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		l := newSenderLink(w.client, "contacts")
		a, err := l.shared.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end := func(s *amqp.Session) error { return s.Close(t.Context()) }
		if _, err := a.conn.Attach(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		l.shared.Reset(t.Context())
		if _, err := l.open(t.Context()); !wire.Broken(err) {
			t.Errorf("attached to an ended session with error %v", err)
		}
		if _, err := l.open(t.Context()); err != nil {
			t.Errorf("not attached to another connection: %v", err)
		}
		if err := l.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A session that has ended is met by a send as well, which opens another connection at
// once and loses nothing.
func TestASendMeetsAnEndedSession(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		if err := p.Publish(t.Context(), []relay.Group{group("a", 10)}); err != nil {
			t.Fatal(err)
		}
		a, err := p.link.(*senderLink).shared.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end := func(s *amqp.Session) error { return s.Close(t.Context()) }
		if _, err := a.conn.Attach(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		if err := p.Publish(t.Context(), []relay.Group{group("b", 10)}); err != nil {
			t.Error(err)
		}
		if n := w.dialled(); n != 2 {
			t.Errorf("%d connections, want 2: an ended session takes its connection along", n)
		}
	})
}
