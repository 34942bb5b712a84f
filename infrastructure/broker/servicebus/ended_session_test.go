package servicebus

import (
	"log/slog"
	"testing"

	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
)

// Otherwise every new link would use one more place in an AMQP session.
func TestClosedLinkReleasesItsPlace(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		l := newSenderLink(w.client, "contacts", slog.New(slog.DiscardHandler))
		a, err := l.shared.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		released, release := 0, a.release
		a.release = func() { released++; release() }
		if err := l.close(t.Context()); err != nil || released != 1 {
			t.Errorf("released %d times, error %v; want once", released, err)
		}
	})
}

// The connection of an ended session is replaced, although it is still open.
func TestAttachReplacesTheConnectionOfAnEndedSession(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		l := newSenderLink(w.client, "contacts", slog.New(slog.DiscardHandler))
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

// A send on an ended session opens a new connection at once and succeeds.
func TestSendReplacesTheConnectionOfAnEndedSession(t *testing.T) {
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
		if n := w.connections(); n != 2 {
			t.Errorf("%d connections, want 2: the connection of an ended session is replaced", n)
		}
	})
}
