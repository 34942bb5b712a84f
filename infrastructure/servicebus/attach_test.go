package servicebus

import (
	"testing"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/servicebus/internal/wire"
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
