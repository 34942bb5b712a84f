package servicebus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
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

// network connects a client to an emulator in memory. It can be cut.
type network struct {
	server *busemu.Server
	mu     sync.Mutex // guards the fields below
	down   bool
	open   []net.Conn
	dials  int
	script *script // what becomes of the broker's answers; nil = they pass
}

func (n *network) dial(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	if n.down {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	conn, err := n.server.Dial(ctx)
	if err != nil {
		return nil, err
	}
	n.open = append(n.open, conn)
	if n.script != nil {
		return newScripted(conn, n.script), nil
	}
	return conn, nil
}

// cut closes all connections. If down is set, new ones fail until restore.
func (n *network) cut(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
	for _, c := range n.open {
		_ = c.Close()
	}
	n.open = nil
}

// restore allows new connections.
func (n *network) restore() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
}

// connections returns the number of attempts to connect.
func (n *network) connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// world is an emulator with a topic that has a session subscription and a plain one, and a client of this
// package.
type world struct {
	*network
	client *Client
}

func newWorld(t *testing.T, o *busemu.Options) *world {
	t.Helper()
	if o == nil {
		o = &busemu.Options{}
	}
	if o.Addr = "-"; o.AdminListener == nil {
		o.AdminAddr = "-"
	}
	o.Topology = &busemu.Topology{Topics: []busemu.Topic{{
		Name: "contacts", RequiresDuplicateDetection: true,
		Subscriptions: []busemu.Subscription{
			{Name: "all", RequiresSession: true},
			{Name: "plain"},
		},
	}}}
	w := &world{network: &network{server: busemu.StartT(t, o)}}
	client, err := NewClient(ClientConfig{ConnectionString: w.server.ConnectionString(), Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	w.client = client
	return w
}

// close closes the client. Its goroutines must end before the synctest bubble does.
func (w *world) close(t *testing.T) {
	t.Helper()
	if err := w.client.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if err := w.server.Close(); err != nil {
		t.Error(err)
	}
}

func (w *world) publisher(t *testing.T, opts *PublisherOptions) *Publisher {
	t.Helper()
	p, err := NewPublisher(w.client, "contacts", opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// received returns the messages of the plain subscription. It waits until no more arrive.
func (w *world) received(t *testing.T) []*azservicebus.ReceivedMessage {
	t.Helper()
	client := w.server.Client()
	defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
	r, err := client.NewReceiverForSubscription("contacts", "plain", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close(context.WithoutCancel(t.Context())) }()
	var all []*azservicebus.ReceivedMessage
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		messages, err := r.ReceiveMessages(ctx, 500, nil)
		cancel()
		if len(messages) == 0 {
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			return all
		}
		all = append(all, messages...)
	}
}

// idsByKey returns the ids of messages by session.
func idsByKey(messages []*azservicebus.ReceivedMessage) map[string][]string {
	ids := map[string][]string{}
	for _, m := range messages {
		key := text(m.SessionID)
		ids[key] = append(ids[key], m.MessageID)
	}
	return ids
}

// text returns *s, or "none" if s is nil.
func text(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

// inWorld runs a test in a synctest bubble with an emulator.
func inWorld(t *testing.T, o *busemu.Options, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		defer w.close(t)
		test(t, w)
	})
}

func TestEncodedMessage(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		m := relay.Message{
			ID: "d6a5f4b2", Key: "b5e2e7aa", Action: "ContactNameUpdatedEvent", Body: []byte(`{"name": "Jane",  "ü":1}`),
			Sequence: 12, AggregateVersion: 7, CreatedAt: "2021-09-22T11:37:37.3022907+02:00",
			Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		}
		bare := relay.Message{ID: "bare", Key: "b5e2e7aa", Action: "A", Body: []byte(`{}`)}
		if err := w.publisher(t, nil).Publish(t.Context(), []relay.Group{{Key: m.Key, Messages: []relay.Message{m, bare, m}}}); err != nil {
			t.Fatal(err)
		}
		got := w.received(t)
		if len(got) != 2 {
			t.Fatalf("%d messages, want 2 and the repeated one dropped", len(got))
		}
		r := got[0]
		if string(r.Body) != string(m.Body) || r.MessageID != m.ID || text(r.SessionID) != m.Key || text(r.PartitionKey) != m.Key ||
			text(r.Subject) != m.Action || text(r.ContentType) != "application/json" {
			t.Errorf("received %+v", r)
		}
		want := map[string]any{
			"traceparent": m.Traceparent, "sequence": int64(12), "aggregateVersion": int64(7),
			"cloudEvents_specversion": "1.0", "cloudEvents_id": m.ID, "cloudEvents_source": "/contacts",
			"cloudEvents_type": m.Action, "cloudEvents_time": m.CreatedAt,
		}
		if diff := cmp.Diff(want, r.ApplicationProperties); diff != "" {
			t.Errorf("properties (-want +got):\n%s", diff)
		}
		wantBare := map[string]any{"cloudEvents_specversion": "1.0", "cloudEvents_id": "bare", "cloudEvents_source": "/contacts", "cloudEvents_type": "A"}
		if diff := cmp.Diff(wantBare, got[1].ApplicationProperties); diff != "" {
			t.Errorf("properties of the second (-want +got):\n%s", diff)
		}
	})
}

// The encoder reuses memory, so a message must not get optional properties of the previous one.
func TestEncoderClearsOptionalProperties(t *testing.T) {
	full := relay.Message{
		Action: "A", Body: []byte(`{}`), Sequence: 12, AggregateVersion: 7, CreatedAt: "2021-09-22T11:37:37.3022907+02:00",
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	bare := relay.Message{Action: "B", Body: []byte(`{}`)}
	of := func(key string, messages ...relay.Message) relay.Group {
		for i := range messages {
			messages[i].Key, messages[i].ID = key, fmt.Sprintf("%s.%d", key, i+1)
		}
		return relay.Group{Key: key, Messages: messages}
	}
	for name, groups := range map[string][]relay.Group{
		"batch":  {of("a", full, full, bare, full, bare)},
		"packed": {of("a", full), of("b", full), of("c", bare), of("d", bare)},
		"single": {of("a", full), of("b", bare), of("c", full), of("d", bare)},
	} {
		inWorld(t, nil, func(t *testing.T, w *world) {
			p := w.publisher(t, &PublisherOptions{PackKeys: name == "packed", limits: limits{inFlight: 1}})
			if err := p.Publish(t.Context(), groups); err != nil {
				t.Fatal(err)
			}
			got := map[string]map[string]any{}
			for _, m := range w.received(t) {
				got[m.MessageID] = m.ApplicationProperties
			}
			want := map[string]map[string]any{}
			for _, g := range groups {
				for _, m := range g.Messages {
					want[m.ID] = map[string]any{
						"cloudEvents_specversion": "1.0", "cloudEvents_id": m.ID, "cloudEvents_source": "/contacts", "cloudEvents_type": m.Action,
					}
					if m.Sequence > 0 {
						maps.Copy(want[m.ID], map[string]any{
							"traceparent": m.Traceparent, "sequence": int64(12), "aggregateVersion": int64(7), "cloudEvents_time": m.CreatedAt,
						})
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: properties (-want +got):\n%s", name, diff)
			}
		})
	}
}

func TestPublishManyToTheEmulator(t *testing.T) {
	for _, pack := range []bool{false, true} {
		inWorld(t, nil, func(t *testing.T, w *world) {
			p := w.publisher(t, &PublisherOptions{PackKeys: pack})
			want := map[string][]string{}
			for page := range 3 {
				var groups []relay.Group
				for k := range 100 {
					g := group(fmt.Sprintf("k%d", k), 10, 10, 10, 10, 10)
					for i := range g.Messages {
						m := &g.Messages[i]
						m.ID = fmt.Sprintf("%s.%d.%d", g.Key, page, i)
						want[g.Key] = append(want[g.Key], m.ID)
					}
					groups = append(groups, g)
				}
				if err := p.Publish(t.Context(), groups); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, idsByKey(w.received(t))); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPublishSplitsAndRefusesBySize(t *testing.T) {
	for _, premium := range []bool{false, true} {
		inWorld(t, &busemu.Options{Premium: premium}, func(t *testing.T, w *world) {
			limit := 256 << 10
			if premium {
				limit = 1 << 20
			}
			p := w.publisher(t, nil)
			err := p.Publish(t.Context(), []relay.Group{
				group("a", limit/3, limit/3, limit/3, limit/3, 100),
				group("b", limit-1200, 10), // fits just so
				group("c", 10, limit+10, 10),
				group("d", 10),
			})
			wantFailed(t, err, "c after 1: refused too_large")
			want := map[string][]string{"a": {"a.1", "a.2", "a.3", "a.4", "a.5"}, "b": {"b.1", "b.2"}, "c": {"c.1"}, "d": {"d.1"}}
			if diff := cmp.Diff(want, idsByKey(w.received(t))); diff != "" {
				t.Errorf("premium %v: received (-want +got):\n%s", premium, diff)
			}
		})
	}
}

func TestPublisherRecoversFromALostConnection(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		for n := range 5 {
			g := group("a", 10)
			g.Messages[0].ID = fmt.Sprint("a.", n)
			if err := p.Publish(t.Context(), []relay.Group{g}); err != nil {
				t.Fatalf("round %d: %v", n, err)
			}
			w.cut(false)
			synctest.Wait()
		}
		if got := idsByKey(w.received(t)); len(got["a"]) != 5 {
			t.Errorf("received %v, want 5", got)
		}
	})
}

func TestPublisherRecoversAfterAnOutage(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		if err := p.Publish(t.Context(), []relay.Group{group("a", 10)}); err != nil {
			t.Fatal(err)
		}
		w.cut(true)
		dialled := w.connections()
		for range 10 {
			err := p.Publish(t.Context(), []relay.Group{group("a", 10), group("b", 10)})
			if e, ok := errors.AsType[*relay.PublishError](err); !ok || relay.ClassOf(e.Keys[0].Err) != relay.Outage {
				t.Fatalf("error %v, want an outage", err)
			}
			time.Sleep(time.Second)
		}
		if n := w.connections() - dialled; n > 60 {
			t.Errorf("%d dials in about 15 s of outage; the client spins", n)
		}
		w.restore()
		if err := p.Publish(t.Context(), []relay.Group{group("a", 10), group("b", 10)}); err != nil {
			t.Fatal(err)
		}
		if got := idsByKey(w.received(t)); len(got["a"]) != 1 || len(got["b"]) != 1 {
			t.Errorf("received %v, want each once", got)
		}
	})
}

// The outage lasts longer than the refresh interval of the token.
func TestClientBacksOffDuringAnOutage(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		if err := p.Publish(t.Context(), []relay.Group{group("a", 10)}); err != nil {
			t.Fatal(err)
		}
		w.cut(true)
		dialled := w.connections()
		time.Sleep(3 * time.Hour) // a token expires after two hours at most
		if rate := float64(w.connections()-dialled) / (3 * 3600); rate > 5 {
			t.Errorf("%.1f dials a second through an outage", rate)
		}
		w.restore()
		if err := p.Publish(t.Context(), []relay.Group{group("b", 10)}); err != nil {
			t.Fatal(err)
		}
	})
}

// The client has not detected that the broker closed its connections, because nothing was sent since.
func TestCloseSucceedsAfterTheBrokerHasEnded(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		if err := p.Publish(t.Context(), []relay.Group{group("a", 1)}); err != nil {
			t.Fatal(err)
		}
		if err := w.server.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := w.client.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The link to a missing topic does not open, so no batch is sent. The failure is reported once a call all
// the same, because otherwise a relay without a topic would count as one that has not sent yet.
func TestPublishToAMissingTopicIsBlockedAndReported(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		var reports reportLog
		p, err := NewPublisher(w.client, "nowhere", &PublisherOptions{Sent: reports.add})
		if err != nil {
			t.Fatal(err)
		}
		wantFailed(t, p.Publish(t.Context(), []relay.Group{group("a", 10), group("b", 10)}), "a after 0: blocked entity_not_found", "b after 0: blocked entity_not_found")
		reports.want(t, "0 of 0 accepted, blocked entity_not_found")
	})
}

// reportLog records the reports of a publisher.
type reportLog struct {
	mu  sync.Mutex
	all []string
}

func (l *reportLog) add(_ context.Context, r relay.BatchReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf("%d of %d accepted, %s %s", r.Accepted, r.Messages, relay.ClassOf(r.Err), relay.ReasonOf(r.Err)))
}

func (l *reportLog) want(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.all, want) {
		t.Errorf("reported %q, want %q", l.all, want)
	}
}

func TestPublishWithoutTheSendRight(t *testing.T) {
	inWorld(t, &busemu.Options{Keys: []busemu.SASKey{
		{Name: "all", Key: "k1"}, {Name: "listen", Key: "k2", Rights: busemu.RightListen},
	}}, func(t *testing.T, w *world) {
		client, err := NewClient(ClientConfig{ConnectionString: w.server.ConnectionStringFor("listen"), Dial: w.dial})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
		var reports reportLog
		p, err := NewPublisher(client, "contacts", &PublisherOptions{Sent: reports.add})
		if err != nil {
			t.Fatal(err)
		}
		wantFailed(t, p.Publish(t.Context(), []relay.Group{group("a", 10)}), "a after 0: outage unauthorized")
		reports.want(t, "0 of 0 accepted, outage unauthorized")
	})
}

func TestEventIsPublishedOnceIfTheOutcomeIsLost(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.publisher(t, nil)
		groups := []relay.Group{group("a", 10, 10), group("b", 10)}
		for range 3 {
			if err := p.Publish(t.Context(), groups); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string][]string{"a": {"a.1", "a.2"}, "b": {"b.1"}}
		if diff := cmp.Diff(want, idsByKey(w.received(t))); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	})
}

func TestErrorTextContainsTheReason(t *testing.T) {
	err := classify(t.Context(), t.Context(), rejected(amqp.ErrCondMessageSizeExceeded))
	if !strings.HasPrefix(err.Error(), "refused: too_large: ") {
		t.Errorf("text %q", err)
	}
}
