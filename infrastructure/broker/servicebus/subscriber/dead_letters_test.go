package subscriber_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/operator"
	"feedbox/tests/servers"
)

// window is a doctor that knows the duplicate window of the topic.
type window struct{ operator.BrokerDoctor }

func (window) Window(context.Context, string) operator.Window {
	return operator.Window{Length: 10 * time.Minute}
}

func TestDeadLettersOfSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := busemu.StartT(t, &busemu.Options{Addr: "-", AdminAddr: "-", Topology: &busemu.Topology{Topics: []busemu.Topic{{
			Name: topic, RequiresDuplicateDetection: true, DuplicateDetectionWindow: 10 * time.Minute,
			Subscriptions: []busemu.Subscription{
				{Name: "billing", RequiresSession: true, LockDuration: 30 * time.Second}, {Name: "audit", RequiresSession: true, LockDuration: 30 * time.Second},
			},
		}}}})
		namespace := servicebus.ClientConfig{
			ConnectionString: server.ConnectionString(),
			Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				return server.Dial(ctx)
			},
		}
		client, err := servicebus.NewClient(namespace)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		publisher, err := servicebus.NewPublisher(client, topic, nil)
		if err != nil {
			t.Fatal(err)
		}
		letters, err := subscriber.NewDeadLetters(namespace, topic)
		if err != nil {
			t.Fatal(err)
		}
		start := func(t *testing.T, name string, handler consumer.Handler, inbox consumer.Inbox) func() {
			p, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription(topic, name), handler, &subscriber.SessionOptions{Inbox: inbox})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			return sync.OnceFunc(func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		}
		var mu sync.Mutex
		var others []string
		t.Cleanup(start(t, "audit", func(_ context.Context, e *consumer.Event) error {
			mu.Lock()
			defer mu.Unlock()
			others = append(others, e.ID)
			return nil
		}, nil))
		servers.TestDeadLetters(t, servers.Letters{
			Port: letters, Doctor: window{}, Consumer: "billing",
			Publish: func(t *testing.T, groups []relay.Group) {
				if err := publisher.Publish(t.Context(), groups); err != nil {
					t.Fatal(err)
				}
			},
			Start: func(t *testing.T, handler consumer.Handler, inbox consumer.Inbox) func() {
				return start(t, "billing", handler, inbox)
			},
			Others: func() []string {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(others)
			},
			Eventually: func(t *testing.T, what string, ok func() bool) {
				t.Helper()
				for end := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("after a minute: no %s", what)
					}
				}
			},
		})
	})
}
