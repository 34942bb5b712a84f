package subscriber_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
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
	"feedbox/infrastructure/relay/relayport"
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

// reject dead-letters the events of a subscription, and returns their letters.
func (d *broker) reject(t *testing.T, name string, events int) (letters *subscriber.DeadLetters, ids []string) {
	t.Helper()
	p, err := subscriber.NewSessionProcessor(d.namespace, subscriber.Subscription(topic, name), func(context.Context, *consumer.Event) error {
		return consumer.DeadLetter("unknown", nil)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := d.start(t, p)
	settle(10 * time.Second)
	stop()
	settle(time.Second) // the broker grants no session to a request of p any more
	if letters, err = subscriber.NewDeadLetters(d.namespace, topic); err != nil {
		t.Fatal(err)
	}
	found, more, err := letters.Read(t.Context(), name, events)
	if err != nil || more || len(found) != events {
		t.Fatalf("%d letters, more %v, %v", len(found), more, err)
	}
	for _, l := range found {
		ids = append(ids, l.ID)
	}
	return letters, ids
}

// An act on many letters may take longer than the lock of one.
func TestLockOfALetterIsRenewedAfterHalfOfItsDuration(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "a", 1)
		letters, ids := d.reject(t, subscription, 1)
		claim, err := letters.Claim(t.Context(), subscription, ids)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(lockDuration * 2 / 3)
		if err := claim.Resubmit(t.Context(), ids[0], relayport.Resubmission{ID: "r1"}); err != nil {
			t.Error(err)
		}
		time.Sleep(lockDuration * 2 / 3)
		if err := claim.Remove(t.Context(), ids[0]); err != nil {
			t.Error(err)
		}
		claim.Release(t.Context())
	})
}

// Otherwise a claim would pass the same letters again and again.
func TestClaimEndsIfItsLocksExpireBeforeTheLettersAreFound(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "a", 1, 2, 3)
		letters, _ := d.reject(t, "brief", 3)
		began := time.Now()
		if _, err := letters.Claim(t.Context(), "brief", []string{"12345678"}); err == nil || !strings.Contains(err.Error(), "raise the lock duration") || time.Since(began) > time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// Otherwise a claim would lock any number of letters, and keep them in memory.
func TestClaimPassesABoundedNumberOfLetters(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "a", numbers(1, 5100)...)
		letters, ids := d.reject(t, subscription, 5100)
		claim, err := letters.Claim(t.Context(), subscription, ids[len(ids)-1:])
		if err == nil {
			claim.Release(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), "more than 5000 other letters") {
			t.Errorf("claim of the last letter: %v", err)
		}
	})
}

func TestResubmittedMessageDoesNotExpireAtTheTimeOfItsLetter(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		sender, err := d.client.NewSender(topic, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := &azservicebus.AMQPAnnotatedMessage{Body: azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{[]byte(`{}`)}}, Properties: &azservicebus.AMQPAnnotatedMessageProperties{
			MessageID: "a.1", GroupID: new("a"), CreationTime: new(time.Now()), AbsoluteExpiryTime: new(time.Now().Add(time.Hour)), // as senders of other languages
		}}
		if err := sender.SendAMQPAnnotatedMessage(t.Context(), m, nil); err != nil {
			t.Fatal(err)
		}
		letters, ids := d.reject(t, subscription, 1)
		claim, err := letters.Claim(t.Context(), subscription, ids)
		if err != nil {
			t.Fatal(err)
		}
		if err := claim.Resubmit(t.Context(), ids[0], relayport.Resubmission{ID: "r1"}); err != nil {
			t.Fatal(err)
		}
		claim.Release(t.Context())
		receiver, err := d.client.AcceptSessionForSubscription(t.Context(), topic, subscription, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		found, err := receiver.ReceiveMessages(t.Context(), 1, nil)
		if err != nil || len(found) != 1 || found[0].MessageID != "r1" {
			t.Fatalf("%+v, %v", found, err)
		}
		if p := found[0].RawAMQPMessage.Properties; p.AbsoluteExpiryTime != nil || p.CreationTime != nil {
			t.Errorf("created at %v, expires at %v", p.CreationTime, p.AbsoluteExpiryTime)
		}
	})
}

// All subscriptions of the topic receive a resubmission. A processor without sessions has no inbox, and one in
// memory has forgotten the event, so they would handle it again, after later events of its key.
func TestResubmissionIsHandledByItsConsumerAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		if err := d.server.CreateSubscription(t.Context(), topic, busemu.Subscription{Name: "plain", LockDuration: lockDuration}); err != nil {
			t.Fatal(err)
		}
		d.publish(t, "a", 1, 2)
		letters, ids := d.reject(t, "brief", 2)
		run := func(want int, start ...func() (stop func())) {
			t.Helper()
			var stops []func()
			for _, one := range start {
				stops = append(stops, one())
			}
			settle(10 * time.Second)
			for _, stop := range stops {
				stop()
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if got := d.handled["a"]; len(got) != want {
				t.Errorf("handled %v, want %d events", got, want)
			}
		}
		plain := func(source subscriber.Source) func() func() {
			return func() func() {
				p, err := subscriber.NewProcessor(d.namespace, source, d.recording(nil), &subscriber.Options{Observe: d.observe})
				if err != nil {
					t.Fatal(err)
				}
				return d.start(t, p)
			}
		}
		sessions := func() func() { return d.run(t, subscriber.SessionOptions{}, nil) }
		run(4, plain(subscriber.Subscription(topic, "plain")), sessions)
		d.outcomes = nil
		claim, err := letters.Claim(t.Context(), "brief", ids[:1])
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(claim.Resubmit(t.Context(), ids[0], relayport.Resubmission{ID: "r1"}), claim.Remove(t.Context(), ids[0])); err != nil {
			t.Fatal(err)
		}
		claim.Release(t.Context())
		run(4, plain(subscriber.Subscription(topic, "plain")), sessions)
		d.wantOutcomes(t, "a.1 stale dropped", "a.1 stale dropped")
		d.reject(t, "brief", 2) // refused again, and still a letter of its consumer
		run(6, plain(subscriber.Subscription(topic, "brief").DeadLetters()))
	})
}

func TestConsumerNamesItsNamespace(t *testing.T) {
	all := subscriber.Namespaces{}
	for _, name := range []string{"", "b.example"} {
		var err error
		host := "a.example"
		if name != "" {
			host = name
		}
		if all[name], err = subscriber.NewDeadLetters(servicebus.ClientConfig{
			ConnectionString: "Endpoint=sb://" + host + "/;SharedAccessKeyName=root;SharedAccessKey=a2V5",
		}, "of "+host); err != nil {
			t.Fatal(err)
		}
	}
	for consumerName, want := range map[string]string{
		"billing": "topic of a.example", "e0/billing": "topic e0", "e1@b.example/billing": "topic e1", "e1@c.example/billing": "topic e1@c.example",
	} {
		if got := all.Reach(consumerName); got != want {
			t.Errorf("%s: %s, want %s", consumerName, got, want)
		}
	}
}
