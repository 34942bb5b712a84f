package subscriber_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/busemu"
)

var jobs = subscriber.Queue("jobs")

// runPlain starts a processor of the queue without sessions.
func (d *broker) runPlain(t *testing.T, opts subscriber.Options, handler consumer.Handler) (stop func()) {
	t.Helper()
	opts.Observe = d.observe
	p, err := subscriber.NewProcessor(d.namespace, jobs, d.recording(handler), &opts)
	if err != nil {
		t.Fatal(err)
	}
	return d.start(t, p)
}

func (d *broker) enqueue(t *testing.T, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		if err := d.server.Send(t.Context(), "jobs", busemu.Message{ID: fmt.Sprintf("j%d", n), PartitionKey: "jobs", Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
}

func (d *broker) jobsLeft(t *testing.T) []busemu.PeekedMessage {
	t.Helper()
	messages, err := d.server.Peek("jobs", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

func TestEventsAreHandledInParallel(t *testing.T) {
	for _, prefetch := range []int{3, 4, 50} {
		inBubble(t, func(t *testing.T, d *broker) {
			d.enqueue(t, 1, 100)
			stop := d.runPlain(t, subscriber.Options{Concurrency: 3, Prefetch: prefetch}, func(context.Context, *consumer.Event) error {
				time.Sleep(100 * time.Millisecond)
				return nil
			})
			settle(100*time.Millisecond*34 + time.Second)
			stop()
			if got := d.handled["jobs"]; len(got) != 100 || d.most != 3 || len(d.jobsLeft(t)) != 0 || d.connections() != 1 {
				t.Errorf("%d handled, %d at a time, %d left, %d connections", len(got), d.most, len(d.jobsLeft(t)), d.connections())
			}
		})
	}
}

// Each loss of a link that has worked is the first failure of its series, so the next pause is short.
func TestWorkingLinkEndsASeriesOfFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		var log bytes.Buffer
		stop := d.runPlain(t, subscriber.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, nil)
		for n := 1; n <= 4; n++ {
			d.enqueue(t, n, n)
			settle(time.Minute)
			d.cut()
		}
		settle(time.Minute)
		stop()
		if n := strings.Count(log.String(), "receiving failed"); n != 4 || strings.Count(log.String(), "failures=1\n") != n {
			t.Errorf("%d failures:\n%s", n, &log)
		}
	})
}

func TestMessageLockIsRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.enqueue(t, 1, 2)
		stop := d.runPlain(t, subscriber.Options{Concurrency: 1}, func(context.Context, *consumer.Event) error {
			time.Sleep(time.Minute) // six lock durations, which the second message waits
			return nil
		})
		settle(3 * time.Minute)
		stop()
		slices.Sort(d.outcomes) // either may be first
		d.wantOutcomes(t, "j1 fresh handled", "j2 fresh handled")
	})
}

func TestLostMessageLockEndsTheHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.server.Control(busemu.OpManagement, busemu.Times(1, busemu.Fault{Err: &busemu.Error{Condition: busemu.MessageLockLost, Description: "The lock is gone."}}))
		d.enqueue(t, 1, 1)
		var cause error
		calls := 0
		stop := d.runPlain(t, subscriber.Options{}, func(ctx context.Context, _ *consumer.Event) error {
			if calls++; calls == 1 {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return cause
			}
			return nil
		})
		settle(time.Minute)
		stop()
		if !errors.Is(cause, consumer.ErrLockLost) || len(d.jobsLeft(t)) != 0 {
			t.Errorf("cause %v, %d left", cause, len(d.jobsLeft(t)))
		}
	})
}

func TestMessageIsAbandonedAfterABackoff(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.enqueue(t, 1, 2)
		var at []time.Duration
		began := time.Now()
		stop := d.runPlain(t, subscriber.Options{Concurrency: 1, Prefetch: 1, RetryDelay: 4 * time.Second}, func(_ context.Context, e *consumer.Event) error {
			if e.ID == "j2" {
				return consumer.DeadLetter("bad", errors.New("it is"))
			}
			if at = append(at, time.Since(began)); e.DeliveryCount < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		settle(time.Minute)
		stop()
		if len(at) != 3 || at[1] < 3200*time.Millisecond || at[2]-at[1] < 6400*time.Millisecond {
			t.Errorf("handled after %v, want 4 s and then 8 s between", at)
		}
		dead, err := d.client.NewReceiverForQueue("jobs", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
		if err != nil {
			t.Fatal(err)
		}
		letters, err := dead.ReceiveMessages(t.Context(), 5, nil)
		if err != nil || len(letters) != 1 || *letters[0].DeadLetterReason != "bad" {
			t.Errorf("dead letters %v, %v", letters, err)
		}
	})
}

// Other consumers receive prefetched messages as soon as the processor stops, and the broker does not count a
// failed delivery.
func TestDrainReleasesPrefetchedMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.enqueue(t, 1, 30)
		stop := d.runPlain(t, subscriber.Options{Concurrency: 2, Prefetch: 20}, func(context.Context, *consumer.Event) error {
			time.Sleep(5 * time.Second)
			return nil
		})
		settle(time.Second)
		stop()
		if len(d.jobsLeft(t)) != 28 {
			t.Errorf("%d left, want 28", len(d.jobsLeft(t)))
		}
		receiver, err := d.client.NewReceiverForQueue("jobs", nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := receiver.ReceiveMessages(t.Context(), 28, &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: time.Second})
		if err != nil || len(got) != 28 {
			t.Errorf("%d messages released, %v; want 28", len(got), err)
		}
		for _, m := range got {
			if m.DeliveryCount != 1 {
				t.Errorf("%s has been delivered %d times", m.MessageID, m.DeliveryCount)
			}
		}
	})
}

func TestPlainProcessorReconnects(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.enqueue(t, 1, 60)
		stop := d.runPlain(t, subscriber.Options{Concurrency: 2}, func(context.Context, *consumer.Event) error {
			time.Sleep(200 * time.Millisecond)
			return nil
		})
		for i := range 6 {
			time.Sleep(time.Second)
			switch i % 3 {
			case 0:
				d.cut()
			case 1:
				d.server.ExpireTokens()
			case 2:
				if err := d.server.Detach("jobs", &busemu.Error{Condition: busemu.DetachForced, Description: "detached"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		settle(time.Minute)
		stop()
		ids := slices.Sorted(slices.Values(d.handled["jobs"]))
		if n := len(slices.Compact(ids)); n != 60 || len(d.jobsLeft(t)) != 0 {
			t.Errorf("%d of 60 handled, %d left", n, len(d.jobsLeft(t)))
		}
	})
}

// The dead-letter queue of a source with sessions has no sessions.
func TestProcessorReceivesDeadLetters(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "a", 1)
		stop := d.run(t, subscriber.SessionOptions{}, func(context.Context, *consumer.Event) error {
			return consumer.DeadLetter("unknown", nil)
		})
		settle(time.Second)
		stop()
		var reason any
		p, err := subscriber.NewProcessor(d.namespace, source.DeadLetters(), func(ctx context.Context, e *consumer.Event) error {
			reason = e.Properties["DeadLetterReason"]
			if e.Key != "a" || subscriber.SessionOf(ctx) != nil {
				t.Errorf("key %q, session %v", e.Key, subscriber.SessionOf(ctx))
			}
			if _, err := subscriber.SessionOf(ctx).State(t.Context()); err == nil {
				t.Error("there is a state without a session")
			}
			return nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		stop = d.start(t, p)
		settle(time.Second)
		stop()
		if reason != "unknown" {
			t.Errorf("reason %v", reason)
		}
	})
}

func TestAllInvalidOptionsAreReported(t *testing.T) {
	t.Parallel()
	bus := servicebus.ClientConfig{}
	_, err := subscriber.NewSessionProcessor(bus, subscriber.Subscription("", "x"), nil, &subscriber.SessionOptions{Sessions: -1, SessionIdle: -1, DrainTimeout: -1})
	for _, part := range []string{"connection string", "source", "handler", "Sessions", "SessionIdle", "times"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v does not name %s", err, part)
		}
	}
	_, err = subscriber.NewProcessor(bus, subscriber.Queue("").DeadLetters(), nil, &subscriber.Options{Concurrency: 9, Prefetch: 3, RetryDelayMax: 1})
	for _, part := range []string{"connection string", "source", "handler", "Prefetch", "times"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v does not name %s", err, part)
		}
	}
}

func TestPlainDrainEndsAfterItsTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.enqueue(t, 1, 1)
		var cause atomic.Value
		stop := d.runPlain(t, subscriber.Options{DrainTimeout: 3 * time.Second}, func(ctx context.Context, _ *consumer.Event) error {
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			return ctx.Err()
		})
		settle(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took != 3*time.Second || !errors.Is(cause.Load().(error), consumer.ErrDrainTimeout) {
			t.Errorf("drain took %v with %v", took, cause.Load())
		}
	})
}

// Both processors drop an event after the attempts of its policy, which are fewer than the deliveries of the
// broker. Without sessions, an unavailable handler spends no delivery either.
// A handled event is no failed attempt, even on its last delivery.
func TestEventHandledOnItsLastAttemptIsCompleted(t *testing.T) {
	for attempts := range 2 {
		inBubble(t, func(t *testing.T, d *broker) {
			failed := 0
			d.enqueue(t, 1, 1)
			stop := d.runPlain(t, subscriber.Options{Policies: map[string]consumer.Policy{"": {Attempts: attempts + 1}}, Concurrency: 1}, func(context.Context, *consumer.Event) error {
				if failed++; failed <= attempts {
					return errors.New("not yet")
				}
				return nil
			})
			settle(time.Minute)
			stop()
			want := append(slices.Repeat([]string{"j1 fresh abandoned"}, attempts), "j1 fresh handled")
			if n, got := len(d.jobsLeft(t)), slices.Sorted(slices.Values(d.outcomes)); n != 0 || !slices.Equal(got, want) { // the next delivery may be observed before
				t.Errorf("%d messages left, outcomes %v, want %v", n, got, want)
			}
		})
	}
}

func TestPoliciesDropEventsAndSpareDeliveries(t *testing.T) {
	for name, sessions := range map[string]bool{"sessions": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *broker) {
				policies := map[string]consumer.Policy{"": {Attempts: 2, Refused: consumer.Drop, Dependency: "crm", RetryDelayMax: 2 * time.Second}}
				calls := map[string]int{}
				handler := func(_ context.Context, e *consumer.Event) error {
					d.mu.Lock()
					defer d.mu.Unlock()
					switch calls[e.ID]++; {
					case e.ID != "k.1" && e.ID != "j1":
						return nil
					case calls[e.ID] <= 8:
						if e.DeliveryCount != 1 {
							t.Errorf("delivery %d in the outage", e.DeliveryCount)
						}
						return consumer.Unavailable(errors.New("503"))
					}
					return errors.New("never")
				}
				var stop func()
				if sessions {
					d.publish(t, "k", 1, 2)
					stop = d.run(t, subscriber.SessionOptions{Policies: policies}, handler)
				} else {
					d.enqueue(t, 1, 2)
					stop = d.runPlain(t, subscriber.Options{Policies: policies, Concurrency: 1}, handler)
				}
				settle(5 * time.Minute)
				stop()
				if sessions {
					if n := d.left(t); n != 0 || calls["k.1"] != 10 || calls["k.2"] != 1 {
						t.Errorf("%d messages left, calls %v", n, calls)
					}
				} else if n := len(d.jobsLeft(t)); n != 0 || calls["j1"] != 10 || calls["j2"] != 1 {
					t.Errorf("%d messages left, calls %v", n, calls)
				}
				if last := slices.Index(d.outcomes, map[bool]string{true: "k.1 fresh dropped", false: "j1 fresh dropped"}[sessions]); last < 0 {
					t.Errorf("outcomes %v", d.outcomes)
				}
			})
		})
	}
}
