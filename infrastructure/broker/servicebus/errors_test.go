package servicebus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/Azure/go-amqp"
	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/shared"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/pipenet"
)

func TestClassifyErrors(t *testing.T) {
	answer := rejected
	tests := []struct {
		err    error
		class  relay.Class
		reason string
	}{
		{answer("com.microsoft:server-busy"), relay.Outage, "server_busy"},
		{answer("com.microsoft:timeout"), relay.Outage, "server_timeout"},
		{answer(amqp.ErrCondUnauthorizedAccess), relay.Outage, "unauthorized"},
		{answer(amqp.ErrCondDetachForced), relay.Outage, "link_detached"},
		{answer("some:thing-new"), relay.Outage, "unknown"},
		{answer(amqp.ErrCondNotFound), relay.Blocked, "entity_not_found"},
		{answer("com.microsoft:entity-disabled"), relay.Blocked, "entity_disabled"},
		{answer(amqp.ErrCondResourceLimitExceeded), relay.Blocked, "entity_full"},
		{answer(amqp.ErrCondMessageSizeExceeded), relay.Refused, "too_large"},
		{answer(amqp.ErrCondDecodeError), relay.Refused, "malformed"},
		{answer(amqp.ErrCondNotAllowed), relay.Refused, "not_allowed"},
		{&notAcceptedError{amqp.Error{Condition: "rejected"}}, relay.Refused, "rejected"},
		{&notAcceptedError{amqp.Error{Condition: "no outcome"}}, relay.Outage, "no_outcome"},
		{fmt.Errorf("wrapped: %w", &amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotFound}}), relay.Blocked, "entity_not_found"},
		{&amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotAllowed}}, relay.Refused, "not_allowed"},
		{&amqp.SessionError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotAllowed}}, relay.Outage, "connection_lost"},
		{&amqp.ConnError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondInvalidField}}, relay.Outage, "connection_lost"},
		{&amqp.LinkError{}, relay.Outage, "connection_lost"},
		{&amqp.ConnError{}, relay.Outage, "connection_lost"},
		{&amqp.Error{Condition: amqp.ErrCondMessageSizeExceeded}, relay.Refused, "too_large"},
		{&attachError{&amqp.Error{Condition: amqp.ErrCondNotAllowed}}, relay.Blocked, "link_refused"},
		{&attachError{&amqp.Error{Condition: amqp.ErrCondNotFound}}, relay.Blocked, "entity_not_found"},
		{&attachError{&amqp.Error{Condition: "some:thing-new"}}, relay.Outage, "unknown"},
		{&attachError{&amqp.ConnError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotAllowed}}}, relay.Outage, "connection_lost"},
		{&attachError{&wire.RefusedError{Status: 401}}, relay.Outage, "unauthorized"},
		{&attachError{&wire.RefusedError{Status: 404}}, relay.Blocked, "entity_not_found"},
		{&attachError{&wire.RefusedError{Status: 500}}, relay.Outage, "connection_lost"},
		{&attachError{&net.OpError{Op: "dial", Err: errors.New("connection refused")}}, relay.Outage, "connection_lost"},
		{&attachError{shared.ErrClosed}, relay.Outage, "client_closed"},
		{&azidentity.AuthenticationFailedError{}, relay.Outage, "credential"},
		{errors.New("what is this"), relay.Outage, "unknown"},
	}
	for _, tt := range tests {
		got := classify(t.Context(), t.Context(), tt.err)
		if relay.ClassOf(got) != tt.class || relay.ReasonOf(got) != tt.reason || !errors.Is(got, tt.err) {
			t.Errorf("%v is %v, want %v %s", tt.err, got, tt.class, tt.reason)
		}
	}
}

// Only a refusal for the size of a message is not ambiguous.
func TestRefusalsAreAmbiguous(t *testing.T) {
	for cond, doubtful := range map[amqp.ErrCond]bool{
		amqp.ErrCondMessageSizeExceeded: false, "com.microsoft:entity-disabled": false, "com.microsoft:server-busy": false,
		amqp.ErrCondNotAllowed: true, "com.microsoft:argument-error": true, amqp.ErrCondDecodeError: true, "some:thing-new": true,
		"released": true,
	} {
		e, ok := errors.AsType[*relay.Error](classify(t.Context(), t.Context(), rejected(cond)))
		if !ok || e.Ambiguous != doubtful {
			t.Errorf("%s is %+v, want ambiguous %v", cond, e, doubtful)
		}
	}
}

func TestClassifyReturnsTheErrorOfAnEndedContext(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("lease lost")
	cancel(lost)
	// What go-amqp says of a link without credit when the context ends.
	err := &amqp.Error{Condition: amqp.ErrCondTransferLimitExceeded}
	if got := classify(ended, ended, err); !errors.Is(got, lost) || relay.ClassOf(got) != relay.Outage {
		t.Errorf("classified %v, want the cause of the context", got)
	}
	if got := classify(t.Context(), ended, err); relay.ReasonOf(got) != "send_timeout" {
		t.Errorf("classified %v, want send_timeout", got)
	}
	if got := classify(t.Context(), ended, rejected(amqp.ErrCondNotAllowed)); relay.ReasonOf(got) != "not_allowed" {
		t.Errorf("classified %v, want what the broker answered before the time was up", got)
	}
}

// A send to an ended link is retried. A permanent error, or a link that cannot be attached, would fail
// again.
func TestOnlyEndedLinksAreRetried(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		err     error
		attempt context.Context //nolint:containedctx // of the try
		want    bool
	}{
		{&amqp.LinkError{}, t.Context(), true},
		{&amqp.SessionError{}, t.Context(), true},
		{&amqp.ConnError{}, t.Context(), true},
		{&amqp.LinkError{}, ended, false},
		{&attachError{&amqp.LinkError{}}, t.Context(), false},
		{&amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotFound}}, t.Context(), false},
		{rejected("com.microsoft:server-busy"), t.Context(), false},
		{errors.New("what is this"), t.Context(), false},
	} {
		if got := linkHadEnded(classify(t.Context(), tt.attempt, tt.err)); got != tt.want {
			t.Errorf("%T %v is sent again: %v, want %v", tt.err, tt.err, got, tt.want)
		}
	}
}

func TestNewClientValidatesItsConfig(t *testing.T) {
	for _, cfg := range []ClientConfig{
		{},
		{Namespace: "contoso.servicebus.windows.net"},
		{Namespace: "contoso.servicebus.windows.net", ConnectionString: "Endpoint=sb://x;SharedAccessKeyName=a;SharedAccessKey=b"},
		{ConnectionString: "nonsense"},
	} {
		if _, err := NewClient(cfg); err == nil {
			t.Errorf("config %+v was accepted", cfg)
		}
	}
}

// plainHTTP sends the requests of an admin client over a network without TLS.
type plainHTTP struct{ client *http.Client }

func (p plainHTTP) Do(r *http.Request) (*http.Response, error) {
	r.URL.Scheme, r.URL.Host = "http", "admin:80"
	return p.client.Do(r)
}

// inManagedWorld calls inWorld with an admin client.
func inManagedWorld(t *testing.T, test func(t *testing.T, w *world, a *admin.Client)) {
	synctest.Test(t, func(t *testing.T) {
		network := pipenet.New()
		listener, err := network.Listen("admin:80")
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, &busemu.Options{AdminListener: listener})
		transport := &http.Transport{DialContext: network.DialContext}
		a, err := admin.NewClientFromConnectionString(w.server.ConnectionString(), &admin.ClientOptions{
			ClientOptions: azcore.ClientOptions{Transport: plainHTTP{&http.Client{Transport: transport}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		test(t, w, a)
		transport.CloseIdleConnections()
		w.close(t)
	})
}

// setStatus changes the status of the topic and waits until the broker has ended its links.
func setStatus(t *testing.T, a *admin.Client, status admin.EntityStatus) {
	t.Helper()
	topic, err := a.GetTopic(t.Context(), "contacts", nil)
	if err != nil {
		t.Fatal(err)
	}
	topic.Status = &status
	if _, err := a.UpdateTopic(t.Context(), "contacts", topic.TopicProperties, nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	synctest.Wait()
}

func TestPublisherRecoversAfterTheTopicIsEnabled(t *testing.T) {
	inManagedWorld(t, func(t *testing.T, w *world, a *admin.Client) {
		p := w.publisher(t, nil)
		if err := p.Publish(t.Context(), []relay.Group{group("a", 10)}); err != nil {
			t.Fatal(err)
		}
		setStatus(t, a, admin.EntityStatusSendDisabled)
		for range 3 {
			wantFailed(t, p.Publish(t.Context(), []relay.Group{group("b", 10)}), "a after 0: blocked entity_disabled")
		}
		setStatus(t, a, admin.EntityStatusActive)
		if err := p.Publish(t.Context(), []relay.Group{group("b", 10)}); err != nil {
			t.Fatalf("after the topic was enabled again: %v", err)
		}
		if diff := cmp.Diff(map[string][]string{"a": {"a.1"}, "b": {"b.1"}}, idsByKey(w.received(t))); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	})
}

func TestPublisherRecoversAfterTheTopicIsRecreated(t *testing.T) {
	inManagedWorld(t, func(t *testing.T, w *world, a *admin.Client) {
		p := w.publisher(t, nil)
		if err := p.Publish(t.Context(), []relay.Group{group("a", 10)}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.DeleteTopic(t.Context(), "contacts", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for range 3 {
			wantFailed(t, p.Publish(t.Context(), []relay.Group{group("b", 10)}), "a after 0: blocked entity_not_found")
		}
		if err := w.server.CreateTopic(context.WithoutCancel(t.Context()), busemu.Topic{Name: "contacts"}); err != nil {
			t.Fatal(err)
		}
		if err := p.Publish(t.Context(), []relay.Group{group("b", 10)}); err != nil {
			t.Fatalf("after the topic was created again: %v", err)
		}
	})
}

// countedLink returns an attached link, and counts how often its place is released.
func countedLink(t *testing.T, client *Client) (l *senderLink, a *attachment, released *int) {
	t.Helper()
	l = newSenderLink(client, "contacts", slog.New(slog.DiscardHandler))
	a, err := l.shared.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	released = new(int)
	release := a.release
	a.release = func() { *released++; release() }
	return l, a, released
}

// Otherwise every new link would use one more place in an AMQP session.
func TestClosedLinkReleasesItsPlace(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		l, _, released := countedLink(t, w.client)
		if err := l.close(t.Context()); err != nil || *released != 1 {
			t.Errorf("released %d times, error %v; want once", *released, err)
		}
	})
}

// The broker may still use the handle of a link whose detach it has not answered. A second link with that
// handle would end the session, so the place stays taken until the connection ends.
func TestLinkWithUnansweredDetachKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.close(t)
		client, quiet := quietClient(t, w)
		l, _, released := countedLink(t, client)
		quiet.Store(true)
		began := time.Now()
		if err := l.close(t.Context()); err != nil || *released != 0 || time.Since(began) != detachTimeout {
			t.Errorf("released %d times after %v, error %v; want never, after %v", *released, time.Since(began), err, detachTimeout)
		}
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A send that timed out drops its link. The detach has a timeout of its own: the place is free once the broker
// has answered, and only then.
func TestLinkDroppedByAnEndedSendIsDetached(t *testing.T) {
	for silent, want := range map[bool]int{false: 1, true: 0} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			defer w.close(t)
			client, quiet := quietClient(t, w)
			l, a, released := countedLink(t, client)
			quiet.Store(silent)
			ended, cancel := context.WithTimeout(t.Context(), 0)
			defer cancel()
			l.shared.Drop(ended, a)
			if *released != want {
				t.Errorf("silent %t: released %d times, want %d", silent, *released, want)
			}
			if err := client.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
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
