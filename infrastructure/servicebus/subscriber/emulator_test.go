package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/servicebus"
	"feedbox/infrastructure/servicebus/subscriber"
)

// desk is a broker with a publisher, and what a subscriber to it has seen.
type desk struct {
	server    *busemu.Server
	publisher *servicebus.Publisher
	client    *servicebus.Client // the subscriber's own

	mu       sync.Mutex // guards the fields below
	conns    []net.Conn // of the subscriber
	handled  map[string][]string
	outcomes map[string]int // by verdict and action
}

// atDesk runs a test in a bubble, with a subscriber that runs until the test ends.
func atDesk(t *testing.T, opts subscriber.Options, handler subscriber.Handler, test func(t *testing.T, d *desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{handled: map[string][]string{}, outcomes: map[string]int{}}
		d.server = busemu.StartT(t, &busemu.Options{Addr: "-", AdminAddr: "-", Topology: &busemu.Topology{Topics: []busemu.Topic{{
			Name: "contacts",
			Subscriptions: []busemu.Subscription{{
				Name: "all", RequiresSession: true, LockDuration: 10 * time.Second, MaxDeliveryCount: 5,
			}},
		}}}})
		sending := d.connect(t, nil)
		d.client = d.connect(t, &d.conns)
		var err error
		if d.publisher, err = servicebus.NewPublisher(sending, "contacts", nil); err != nil {
			t.Fatal(err)
		}
		opts.Observe = d.observe
		s, err := subscriber.New(d.client.Client, "contacts", "all", func(ctx context.Context, e *subscriber.Event) error {
			d.mu.Lock()
			d.handled[e.Key] = append(d.handled[e.Key], e.ID)
			d.mu.Unlock()
			if handler == nil {
				return nil
			}
			return handler(ctx, e)
		}, &opts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		test(t, d)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
		for _, c := range []*servicebus.Client{sending, d.client} {
			if err := c.Close(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
			}
		}
		if err := d.server.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (d *desk) connect(t *testing.T, conns *[]net.Conn) *servicebus.Client {
	t.Helper()
	client, err := servicebus.NewClient(servicebus.ClientConfig{
		ConnectionString: d.server.ConnectionString(),
		Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			conn, err := d.server.Dial(ctx)
			if err == nil && conns != nil {
				d.mu.Lock()
				*conns = append(*conns, conn)
				d.mu.Unlock()
			}
			return conn, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (d *desk) observe(_ context.Context, o subscriber.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outcomes[o.Verdict.String()+" "+o.Action.String()]++
}

// cut ends the subscriber's connections.
func (d *desk) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		_ = c.Close()
	}
	d.conns = nil
}

func (d *desk) publish(t *testing.T, key string, sequences ...int) {
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

// settle lets time pass and all goroutines of the bubble come to rest.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (d *desk) want(t *testing.T, handled map[string][]string, outcomes map[string]int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(handled, d.handled); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(outcomes, d.outcomes); outcomes != nil && diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
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

func TestReceivesManySessionsInOrder(t *testing.T) {
	for _, receive := range []int{1, 8} {
		atDesk(t, subscriber.Options{Sessions: 5, Receive: receive}, nil, func(t *testing.T, d *desk) {
			want := map[string][]string{}
			for k := range 30 {
				key := fmt.Sprintf("k%d", k)
				want[key] = ids(key, 1, 12)
				d.publish(t, key, numbers(1, 6)...)
			}
			for k := range 30 {
				d.publish(t, fmt.Sprintf("k%d", k), numbers(7, 12)...)
			}
			settle(2 * time.Minute)
			d.want(t, want, nil)
		})
	}
}

func TestDropsWhatTheBrokerLetsThrough(t *testing.T) {
	atDesk(t, subscriber.Options{}, nil, func(t *testing.T, d *desk) {
		d.publish(t, "a", 1, 2, 3, 3, 2, 1, 4)
		settle(time.Minute)
		d.want(t, map[string][]string{"a": ids("a", 1, 4)}, map[string]int{"fresh handled": 4, "duplicate dropped": 1, "stale dropped": 2})
	})
}

func TestPutsBackAndDeadLetters(t *testing.T) {
	var mu sync.Mutex
	tries := map[string]int{}
	handler := func(_ context.Context, e *subscriber.Event) error {
		mu.Lock()
		defer mu.Unlock()
		tries[e.ID]++
		switch {
		case e.ID == "a.2" && tries[e.ID] < 3:
			return errors.New("not yet")
		case e.ID == "a.3":
			return subscriber.DeadLetter("unknown", errors.New("no such schema"))
		}
		return nil
	}
	atDesk(t, subscriber.Options{}, handler, func(t *testing.T, d *desk) {
		d.publish(t, "a", 1, 2, 3, 4)
		d.publish(t, "b", 1)
		settle(time.Minute)
		d.want(t, map[string][]string{"a": {"a.1", "a.2", "a.2", "a.2", "a.3", "a.4"}, "b": {"b.1"}},
			map[string]int{"fresh handled": 4, "fresh put_back": 2, "fresh dead_lettered": 1})
		dead, err := d.client.NewReceiverForSubscription("contacts", "all", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
		if err != nil {
			t.Fatal(err)
		}
		messages, err := dead.ReceiveMessages(t.Context(), 5, nil)
		if err != nil || len(messages) != 1 || messages[0].MessageID != "a.3" || *messages[0].DeadLetterReason != "unknown" {
			t.Errorf("dead letters %v, %v", messages, err)
		}
	})
}

func TestKeepsALongSession(t *testing.T) {
	handler := func(context.Context, *subscriber.Event) error { time.Sleep(time.Minute); return nil }
	atDesk(t, subscriber.Options{}, handler, func(t *testing.T, d *desk) {
		d.publish(t, "a", 1, 2, 3) // each takes six locks' time
		settle(5 * time.Minute)
		d.want(t, map[string][]string{"a": ids("a", 1, 3)}, map[string]int{"fresh handled": 3})
	})
}

func TestGoesOnAfterALostConnection(t *testing.T) {
	handler := func(context.Context, *subscriber.Event) error { time.Sleep(200 * time.Millisecond); return nil }
	atDesk(t, subscriber.Options{Sessions: 3}, handler, func(t *testing.T, d *desk) {
		want := map[string][]string{}
		for k := range 6 {
			key := fmt.Sprintf("k%d", k)
			d.publish(t, key, numbers(1, 20)...)
			want[key] = ids(key, 1, 20)
		}
		for range 5 {
			time.Sleep(time.Second)
			d.cut()
		}
		settle(10 * time.Minute)
		d.want(t, want, nil)
	})
}
