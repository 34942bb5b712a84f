package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/busemu"
)

const (
	topic, subscription = "contacts", "all"
	entity              = topic + "/Subscriptions/" + subscription
	lockDuration        = 10 * time.Second
)

var source = subscriber.Subscription(topic, subscription)

// broker is an emulator with a publisher, and records what its processors do.
type broker struct {
	server    *busemu.Server
	namespace servicebus.ClientConfig
	publisher *servicebus.Publisher
	client    *azservicebus.Client // for checks

	mu       sync.Mutex    // guards the fields below
	conns    []net.Conn    // of the processors
	silence  chan struct{} // blocks the reads of processors until it is closed; nil: no block
	handled  map[string][]string
	outcomes []string // "id verdict action"
	running  int      // handlers
	most     int      // maximum of running
}

// inBubble runs a test in a synctest bubble with a broker.
func inBubble(t *testing.T, test func(t *testing.T, d *broker)) {
	synctest.Test(t, func(t *testing.T) {
		d := &broker{handled: map[string][]string{}}
		d.server = busemu.StartT(t, &busemu.Options{Addr: "-", AdminAddr: "-", Topology: &busemu.Topology{
			Topics: []busemu.Topic{{
				Name: topic,
				Subscriptions: []busemu.Subscription{{
					Name: subscription, RequiresSession: true, LockDuration: lockDuration, MaxDeliveryCount: 5,
				}, {
					Name: "brief", RequiresSession: true, LockDuration: 2 * time.Second,
				}},
			}},
			Queues: []busemu.Queue{{Name: "jobs", LockDuration: lockDuration, MaxDeliveryCount: 5}},
		}})
		d.namespace = servicebus.ClientConfig{ConnectionString: d.server.ConnectionString(), Dial: d.dial}
		d.client = d.server.Client()
		client, err := servicebus.NewClient(servicebus.ClientConfig{
			ConnectionString: d.server.ConnectionString(),
			Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				return d.server.Dial(ctx)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if d.publisher, err = servicebus.NewPublisher(client, topic, nil); err != nil {
			t.Fatal(err)
		}
		test(t, d)
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(client.Close(ctx), d.client.Close(ctx)); err != nil {
			t.Error(err)
		}
		if err := d.server.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (d *broker) dial(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	conn, err := d.server.Dial(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, conn)
	return silencer{conn, d}, nil
}

// silencer is a connection whose reads block while the broker is silent.
type silencer struct {
	net.Conn
	broker *broker
}

func (s silencer) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.broker.mu.Lock()
	silence := s.broker.silence
	s.broker.mu.Unlock()
	if silence != nil {
		<-silence
	}
	return n, err
}

// connections returns the number of connections that processors have opened.
func (d *broker) connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

// cut closes the connections of processors.
func (d *broker) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		_ = c.Close()
	}
}

// run starts a session processor. stop ends it and waits.
func (d *broker) run(t *testing.T, opts subscriber.SessionOptions, handler consumer.Handler) (stop func()) {
	t.Helper()
	if opts.Observe == nil {
		opts.Observe = d.observe
	}
	p, err := subscriber.NewSessionProcessor(d.namespace, source, d.recording(handler), &opts)
	if err != nil {
		t.Fatal(err)
	}
	return d.start(t, p)
}

func (d *broker) start(t *testing.T, p interface {
	Run(ctx context.Context) error
},
) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	}
}

func (d *broker) recording(handler consumer.Handler) consumer.Handler {
	return func(ctx context.Context, e *consumer.Event) error {
		d.mu.Lock()
		d.handled[e.Key] = append(d.handled[e.Key], e.ID)
		d.running++
		d.most = max(d.most, d.running)
		d.mu.Unlock()
		defer func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.running--
		}()
		if handler == nil {
			return nil
		}
		return handler(ctx, e)
	}
}

func (d *broker) observe(_ context.Context, o consumer.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outcomes = append(d.outcomes, fmt.Sprintf("%s %s %s", o.Event.ID, o.Verdict, o.Action))
}

func (d *broker) publish(t *testing.T, key string, sequences ...int) {
	t.Helper()
	g := relay.Group{Key: key}
	for _, n := range sequences {
		g.Messages = append(g.Messages, relay.Message{
			ID: fmt.Sprintf("%s.%d", key, n), Key: key, Action: "Changed", Body: []byte(`{}`), Sequence: int64(n),
		})
	}
	if err := d.publisher.Publish(t.Context(), []relay.Group{g}); err != nil {
		t.Fatal(err)
	}
}

// left returns the number of messages in the subscription.
func (d *broker) left(t *testing.T) int {
	t.Helper()
	messages, err := d.server.Peek(entity, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return len(messages)
}

// settle advances the time and waits until all goroutines of the bubble block.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (d *broker) wantHandled(t *testing.T, want map[string][]string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(want, d.handled); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
}

func (d *broker) wantOutcomes(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(want, d.outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// wantInOrder checks that all events of each key were handled in order, possibly with repeats.
func (d *broker) wantInOrder(t *testing.T, want map[string][]string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, ids := range want {
		if got := slices.Compact(slices.Clone(d.handled[key])); !slices.Equal(got, ids) {
			t.Errorf("%s was handled as %v, want %v", key, got, ids)
		}
	}
}

func ids(key string, from, to int) []string {
	var out []string
	for n := from; n <= to; n++ {
		out = append(out, fmt.Sprintf("%s.%d", key, n))
	}
	return out
}

func numbers(from, to int) []int {
	var out []int
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}
