package servicebus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/busemu"
)

// All links share one connection, also after it was lost.
func TestTopicsOfAClientShareAConnection(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		topics := map[string]string{}
		var groups []relay.Group
		want := map[string][]string{}
		for i := range 20 {
			name := fmt.Sprint("t", i)
			if err := w.server.CreateTopic(t.Context(), busemu.Topic{Name: name, Subscriptions: []busemu.Subscription{{Name: "plain"}}}); err != nil {
				t.Fatal(err)
			}
			topics[name] = name
			g := group(name, 10)
			g.Messages[0].Action = name
			groups, want[name] = append(groups, g), []string{g.Messages[0].ID}
		}
		p, err := NewTopics(w.client, "contacts", topics, nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			if err := p.Publish(t.Context(), groups); err != nil {
				t.Fatal(err)
			}
			if got := w.connections(); got != n+1 {
				t.Fatalf("%d connections were opened, want %d: one for all topics", got, n+1)
			}
			w.cut(false)
			synctest.Wait()
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The client has not detected the loss, because nothing was sent since.
func TestNewLinkReplacesALostConnection(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		for n := range 3 {
			if err := w.publisher(t, nil).Publish(t.Context(), []relay.Group{group("a", 10)}); err != nil {
				t.Fatalf("publisher %d: %v", n, err)
			}
			w.cut(false)
			synctest.Wait()
		}
	})
}

func TestTokensOfAPublisherAreRefreshed(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		attached := 0
		w.server.Control(busemu.OpAttach, func(c *busemu.Call) *busemu.Fault {
			if c.Entity == "contacts" {
				attached++
			}
			return nil
		})
		for n := range 6 {
			g := group("a", 10)
			g.Messages[0].ID = fmt.Sprint("a.", n)
			if err := p.Publish(t.Context(), []relay.Group{g}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(90 * time.Minute) // a token expires after two hours
		}
		if n := w.connections(); n != 1 || attached != 1 {
			t.Errorf("%d connections and %d links in nine hours, want 1", n, attached)
		}
	})
}

// gate is a connection whose writes block while it is shut, until their deadline.
type gate struct {
	net.Conn
	mu       sync.Mutex // guards what follows
	shut     chan struct{}
	deadline time.Time
}

func (g *gate) SetWriteDeadline(t time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadline = t
	return g.Conn.SetWriteDeadline(t)
}

func (g *gate) Write(b []byte) (int, error) {
	for {
		g.mu.Lock()
		shut, deadline := g.shut, g.deadline
		g.mu.Unlock()
		if shut == nil {
			return g.Conn.Write(b)
		}
		if !time.Now().Before(deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		select {
		case <-shut:
		case <-time.After(100 * time.Millisecond): // the deadline may have changed
		}
	}
}

// close shuts the gate until the returned channel is closed.
func (g *gate) close() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = make(chan struct{})
	return g.shut
}

// inGate calls inWorld with a gate in the connection, and messages of up to 1 MiB.
func inGate(t *testing.T, test func(t *testing.T, w *world, g *gate, p *Publisher)) {
	inWorld(t, &busemu.Options{Premium: true}, func(t *testing.T, w *world) {
		g := &gate{}
		client, err := NewClient(ClientConfig{ConnectionString: w.server.ConnectionString(), Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			var err error
			g.Conn, err = w.server.Dial(ctx)
			return g, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
		p, err := NewPublisher(client, "contacts", &PublisherOptions{limits: limits{sendTimeout: 5 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Publish(t.Context(), []relay.Group{group("z", 1)}); err != nil {
			t.Fatal(err)
		}
		test(t, w, g, p)
		if err := p.Publish(t.Context(), []relay.Group{group("b", 10), group("a", 900<<10)}); err != nil {
			t.Fatal(err)
		}
		got := w.received(t)
		want := map[string][]string{"z": {"z.1"}, "a": {"a.1"}, "b": {"b.1"}}
		if diff := cmp.Diff(want, idsByKey(got)); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		for _, m := range got {
			if m.MessageID == "a.1" && len(m.Body) != 900<<10 {
				t.Errorf("the large message has %d bytes", len(m.Body))
			}
		}
	})
}

// A canceled send may leave a part of a message on its link. The broker would treat the next message as
// the rest of it.
func TestCanceledSendReplacesTheLink(t *testing.T) {
	inGate(t, func(t *testing.T, w *world, g *gate, p *Publisher) {
		ctx, cancel := context.WithCancel(t.Context())
		shut, canceled := g.close(), make(chan error)
		go func() { canceled <- p.Publish(ctx, []relay.Group{group("a", 900<<10)}) }()
		synctest.Wait()
		cancel()
		g.mu.Lock()
		g.shut = nil
		g.mu.Unlock()
		close(shut)
		if err := <-canceled; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
		if n := w.connections(); n != 0 {
			t.Errorf("%d other connections", n)
		}
	})
}

// The timeout also ends a send between the frames of a message, when go-amqp waits for the connection.
func TestBlockedConnectionEndsASend(t *testing.T) {
	inGate(t, func(t *testing.T, _ *world, g *gate, p *Publisher) {
		g.close()
		began := time.Now()
		wantFailed(t, p.Publish(t.Context(), []relay.Group{group("a", 900<<10)}), "a after 0: outage send_timeout")
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("took %v, want 5 s and the time to close the connection", took)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.shut = nil
	})
}

// endedLink is a fakeLink whose sends fail because the link has ended.
type endedLink struct {
	fakeLink
	cond     amqp.ErrCond
	attempts int
	then     func()
	lost     bool // it cannot be attached again
}

func (l *endedLink) open(ctx context.Context) (int, error) {
	if l.lost && l.attempts > 0 {
		return 0, &amqp.ConnError{}
	}
	return l.fakeLink.open(ctx)
}

func (l *endedLink) send(context.Context, *amqp.Message) error {
	l.attempts++
	if l.then != nil {
		l.then()
	}
	return &amqp.LinkError{RemoteErr: &amqp.Error{Condition: l.cond}}
}

// A send is retried once, not after a permanent error, not without a link, and not after the deadline of the call.
func TestRetryHasLimits(t *testing.T) {
	for _, tt := range []struct {
		cond     amqp.ErrCond
		lost     bool
		deadline bool // passes during the first attempt
		attempts int
		want     string
	}{
		{amqp.ErrCondDetachForced, false, false, 2, "a after 0: outage link_detached"},
		{amqp.ErrCondNotFound, false, false, 1, "a after 0: blocked entity_not_found"},
		{amqp.ErrCondNotAllowed, false, false, 1, "a after 0: refused not_allowed"},
		{amqp.ErrCondDetachForced, true, false, 1, "a after 0: outage connection_lost"},
		{amqp.ErrCondDetachForced, false, true, 1, "a after 0: outage interrupted"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &endedLink{cond: tt.cond, lost: tt.lost}
			l.maxBatch = 1000
			ctx := staleContext{t.Context(), time.Now().Add(time.Second)}
			if tt.deadline {
				l.then = func() { time.Sleep(time.Second) }
			}
			p := newPublisher(l, "contacts", nil)
			wantFailed(t, p.Publish(ctx, []relay.Group{group("a", 1)}), tt.want)
			if l.attempts != tt.attempts {
				t.Errorf("%s: %d attempts, want %d", tt.cond, l.attempts, tt.attempts)
			}
		})
	}
}

func TestOpenReturnsTheErrorOfASend(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		if err := p.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		nowhere, err := NewPublisher(w.client, "nowhere", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := nowhere.Open(t.Context()); relay.ReasonOf(err) != "entity_not_found" {
			t.Errorf("error %v, want entity_not_found", err)
		}
	})
}

func TestClosedPublisherAndClientStayClosed(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, other := w.publisher(t, nil), w.publisher(t, nil)
		for _, p := range []*Publisher{p, other} {
			if err := p.Publish(t.Context(), []relay.Group{group("a", 10)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantFailed(t, p.Publish(t.Context(), []relay.Group{group("a", 10)}), "a after 0: outage client_closed")
		if err := other.Publish(t.Context(), []relay.Group{group("b", 10)}); err != nil {
			t.Error(err)
		}
		if err := w.client.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantFailed(t, other.Publish(t.Context(), []relay.Group{group("a", 10)}), "a after 0: outage client_closed")
		if n := w.connections(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}

// A range may lose its lease while it waits for an outcome. Its message was written completely, so the
// link stays open for other sends.
func TestCanceledCallKeepsTheLinkOfOthers(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		if err := p.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		hold, attached := make(chan struct{}), 0
		w.server.Control(busemu.OpSend, busemu.Times(1, busemu.Fault{Hold: hold}))
		w.server.Control(busemu.OpAttach, func(*busemu.Call) *busemu.Fault { attached++; return nil })
		ctx, cancel := context.WithCancel(t.Context())
		canceled, other := make(chan error), make(chan error)
		go func() { canceled <- p.Publish(ctx, []relay.Group{group("a", 10)}) }()
		synctest.Wait()
		go func() { other <- p.Publish(t.Context(), []relay.Group{group("b", 10)}) }()
		synctest.Wait()
		cancel()
		if err := <-canceled; !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled call: %v", err)
		}
		close(hold)
		if err := <-other; err != nil {
			t.Errorf("the other call: %v", err)
		}
		if err := p.Publish(t.Context(), []relay.Group{group("c", 10)}); err != nil || attached != 0 {
			t.Errorf("the next call: %v, with %d new links, want none", err, attached)
		}
	})
}
