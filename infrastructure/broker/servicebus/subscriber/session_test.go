package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cosmosinbox"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/store/cosmos/parked"
	"feedbox/tests/servers"
)

func TestSessionsAreHandledInOrderAndInParallel(t *testing.T) {
	for _, prefetch := range []int{1, 4, 100} {
		inBubble(t, func(t *testing.T, d *broker) {
			want := map[string][]string{}
			for k := range 30 {
				key := fmt.Sprintf("k%d", k)
				want[key] = ids(key, 1, 12)
				d.publish(t, key, numbers(1, 6)...)
			}
			stop := d.run(t, subscriber.SessionOptions{Sessions: 4, Prefetch: prefetch}, func(context.Context, *consumer.Event) error {
				time.Sleep(10 * time.Millisecond)
				return nil
			})
			for k := range 30 {
				d.publish(t, fmt.Sprintf("k%d", k), numbers(7, 12)...)
			}
			settle(time.Minute)
			stop()
			d.wantHandled(t, want)
			if d.most != 4 || d.left(t) != 0 || d.connections() != 1 {
				t.Errorf("%d handlers at a time, want 4; %d messages left; %d connections", d.most, d.left(t), d.connections())
			}
		})
	}
}

func TestRefusedEventsParkTheirSessionsInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		cosmos := cosmosemu.StartT(t, &cosmosemu.Options{Network: pipenet.New(), Host: "parks:443"})
		for _, name := range []string{"inbox", "parked"} {
			if err := cosmos.CreateContainer("billing", cosmosemu.ContainerProps{ID: name, PartitionKey: []string{"/partitionKey"}}); err != nil {
				t.Fatal(err)
			}
		}
		marks, err1 := cosmos.Client().NewContainer("billing", "inbox")
		aside, err2 := cosmos.Client().NewContainer("billing", "parked")
		inbox, err3 := cosmosinbox.New(marks, "mail", nil)
		relays, err4 := parked.NewStore(aside)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		store, err := relays.Of("mail")
		if err != nil {
			t.Fatal(err)
		}
		servers.TestParked(t, servers.ParkedKit{
			Store: store, Inbox: inbox, Keys: 20, Publish: func(all []relay.Group) {
				if err := d.publisher.Publish(t.Context(), all); err != nil {
					t.Error(err)
				}
			},
			Start: func(o consumer.Options, handler consumer.Handler) func() {
				process := &broker{server: d.server}
				p, err := subscriber.NewSessionProcessor(servicebus.ClientConfig{ConnectionString: d.server.ConnectionString(), Dial: process.dial}, source, handler, &subscriber.SessionOptions{
					Park: o.Park, ParkedPoll: o.ParkedPoll, Inbox: o.Inbox, Attempts: o.Attempts, RetryDelay: o.RetryDelay, RetryDelayMax: o.RetryDelayMax, DrainTimeout: o.DrainTimeout,
				})
				if err != nil {
					t.Fatal(err)
				}
				stop := process.start(t, p)
				return func() { process.cut(); stop() }
			},
		})
		letters, err := d.server.Peek(entity+"/$DeadLetterQueue", 10)
		if n := d.left(t); n > 0 || err != nil || len(letters) > 0 {
			t.Errorf("%d messages left, %d dead letters, %v", n, len(letters), err)
		}
	})
}

func TestInboxDropsDuplicates(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "a", 1, 2, 2, 1, 3)
		stop := d.run(t, subscriber.SessionOptions{}, nil)
		settle(time.Second)
		stop()
		d.wantOutcomes(t, "a.1 fresh handled", "a.2 fresh handled", "a.2 duplicate dropped", "a.1 stale dropped", "a.3 fresh handled")
	})
}

// A message of another sender may have no id, or a number. Two without an id are two events.
func TestEventsWithoutAnIDAreNoDuplicates(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		sender, err := d.client.NewSender(topic, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []any{nil, nil, uint64(7), uint64(7)} {
			m := &azservicebus.AMQPAnnotatedMessage{
				Body: azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{[]byte(`{}`)}}, Properties: &azservicebus.AMQPAnnotatedMessageProperties{MessageID: id, GroupID: new("k")},
			}
			if err := sender.SendAMQPAnnotatedMessage(t.Context(), m, nil); err != nil {
				t.Fatal(err)
			}
		}
		stop := d.run(t, subscriber.SessionOptions{}, nil)
		settle(time.Second)
		stop()
		d.wantOutcomes(t, " fresh handled", " fresh handled", "7 fresh handled", "7 duplicate dropped")
	})
}

// The defaults of the option and of the broker are the same number. With a higher one, the broker would
// dead-letter the event, and later ones of its key would overtake it.
func TestEventIsParkedOnTheLastDeliveryOfTheBrokersDefault(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "k", 1, 2)
		brief, store := subscriber.Subscription(topic, "brief"), parkedtest.NewMemory()
		p, err := subscriber.NewSessionProcessor(d.namespace, brief, d.recording(func(context.Context, *consumer.Event) error { return errors.New("never") }), &subscriber.SessionOptions{Park: store})
		if err != nil {
			t.Fatal(err)
		}
		stop := d.start(t, p)
		settle(time.Hour)
		stop()
		letters, err := d.server.Peek(string(brief.DeadLetters()), 10)
		if err != nil || len(letters) > 0 {
			t.Errorf("%d dead letters, %v", len(letters), err)
		}
		if g, err := store.Gate(t.Context(), "k"); err != nil || g.Events != 2 {
			t.Errorf("parked: %+v, %v", g, err)
		}
		d.wantHandled(t, map[string][]string{"k": slices.Repeat([]string{"k.1"}, 10)})
	})
}

// Later events of the key wait for it, and their number does not make it wait longer.
func TestEventAfterAGapWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "k", 1, 3, 4, 5)
		stop := d.run(t, subscriber.SessionOptions{GapDeliveries: 2}, nil)
		settle(time.Minute)
		stop()
		d.wantOutcomes(t, "k.1 fresh handled", "k.3 gap abandoned", "k.3 gap abandoned", "k.3 gap handled", "k.4 fresh handled", "k.5 fresh handled")
	})
}

// The missing event may have been handled by a process that held the session before, and recorded it late.
func TestWaitEndsIfAnotherProcessHasHandledTheMissingEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		inbox := consumer.NewMemoryInbox(0)
		d.publish(t, "k", 1, 3)
		stop := d.run(t, subscriber.SessionOptions{Inbox: inbox, RetryDelay: 10 * time.Second}, nil)
		settle(time.Second)
		if err := inbox.Record(t.Context(), "k", consumer.Mark{Sequence: 2, EventID: "k.2"}); err != nil {
			t.Error(err)
		}
		settle(time.Minute)
		stop()
		d.wantOutcomes(t, "k.1 fresh handled", "k.3 gap abandoned", "k.3 fresh handled")
	})
}

// The subscription dead-letters an event after five deliveries. Waiting and failures of the inbox spend none.
func TestOnlyRefusedEventsSpendDeliveries(t *testing.T) {
	for _, failures := range []int{0, 8} {
		inBubble(t, func(t *testing.T, d *broker) {
			d.publish(t, "k", 1, 3, 4, 6)
			inbox := &failing{MemoryInbox: consumer.NewMemoryInbox(0), left: failures}
			stop := d.run(t, subscriber.SessionOptions{GapDeliveries: 8, Inbox: inbox}, func(_ context.Context, e *consumer.Event) error {
				if e.DeliveryCount != 1 {
					t.Errorf("delivery %d of %s", e.DeliveryCount, e.ID)
				}
				return nil
			})
			settle(10 * time.Minute)
			stop()
			want := append(slices.Repeat([]string{"k.1"}, failures), ids("k", 1, 1)...)
			d.wantHandled(t, map[string][]string{"k": append(want, "k.3", "k.4", "k.6")})
			if n := d.left(t); n != 0 {
				t.Errorf("%d messages left", n)
			}
		})
	}
}

// An error of consumer.Unavailable spends no delivery either, also of an event that would be parked.
func TestUnavailableHandlerSpendsNoDeliveries(t *testing.T) {
	for name, park := range map[string]consumer.ParkedStore{"dead letters": nil, "parked": parkedtest.NewMemory()} {
		inBubble(t, func(t *testing.T, d *broker) {
			d.publish(t, "k", 1, 2)
			failures := 0
			stop := d.run(t, subscriber.SessionOptions{Park: park, Attempts: 1}, func(_ context.Context, e *consumer.Event) error {
				if e.DeliveryCount != 1 {
					t.Errorf("%s: delivery %d of %s", name, e.DeliveryCount, e.ID)
				}
				if failures++; failures <= 8 {
					return consumer.Unavailable(errors.New("the database does not answer"))
				}
				return nil
			})
			settle(10 * time.Minute)
			stop()
			d.wantHandled(t, map[string][]string{"k": append(slices.Repeat([]string{"k.1"}, 8), ids("k", 1, 2)...)})
			if n := d.left(t); n != 0 {
				t.Errorf("%s: %d messages left", name, n)
			}
		})
	}
}

// failing is an inbox that refuses the first marks.
type failing struct {
	*consumer.MemoryInbox
	left int
}

func (f *failing) Record(ctx context.Context, key string, m consumer.Mark) error {
	if f.left > 0 {
		f.left--
		return errors.New("not now")
	}
	return f.MemoryInbox.Record(ctx, key, m)
}

// The missing event is sent again while later ones wait, as after a replay.
func TestMissingEventIsHandledBeforeThoseThatWait(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "k", 1, 3, 5, 1)
		stop := d.run(t, subscriber.SessionOptions{}, nil)
		settle(1500 * time.Millisecond)
		d.wantHandled(t, map[string][]string{"k": ids("k", 1, 1)})
		d.publish(t, "k", 4, 2)
		settle(100 * time.Millisecond)
		d.wantHandled(t, map[string][]string{"k": ids("k", 1, 5)})
		stop()
		if n := d.left(t); n != 0 {
			t.Errorf("%d messages left", n)
		}
	})
}

func TestWaitForAMissingEventEndsWithTheDrain(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "k", 1, 3)
		stop := d.run(t, subscriber.SessionOptions{Sessions: 1, RetryDelay: time.Hour, RetryDelayMax: time.Hour}, nil)
		settle(5 * time.Minute) // the lock is renewed meanwhile
		d.publish(t, "other", 1)
		settle(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("stopped after %v", took)
		}
		d.wantOutcomes(t, "k.1 fresh handled", "k.3 gap abandoned", "other.1 fresh handled")
	})
}

func TestFailedEventIsRetriedBeforeLaterEvents(t *testing.T) {
	for _, prefetch := range []int{1, 3} {
		inBubble(t, func(t *testing.T, d *broker) {
			d.publish(t, "k", 1, 2, 3)
			attempts := 0
			began := time.Now()
			stop := d.run(t, subscriber.SessionOptions{Prefetch: prefetch}, func(_ context.Context, e *consumer.Event) error {
				if e.ID != "k.2" {
					return nil
				}
				switch attempts++; attempts {
				case 1:
					return errors.New("not now")
				case 2:
					panic("cannot")
				}
				if e.DeliveryCount != 3 {
					t.Errorf("delivery %d, want 3", e.DeliveryCount)
				}
				if waited := time.Since(began); waited < 2400*time.Millisecond || waited > 3600*time.Millisecond {
					t.Errorf("handled again after %v, want 1 s and then 2 s", waited)
				}
				return nil
			})
			settle(time.Minute)
			stop()
			d.wantOutcomes(t, "k.1 fresh handled", "k.2 fresh abandoned", "k.2 fresh abandoned", "k.2 fresh handled", "k.3 fresh handled")
		})
	}
}

func TestFailedEventDoesNotBlockOtherSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "bad", 1)
		d.publish(t, "good", 1)
		stop := d.run(t, subscriber.SessionOptions{Sessions: 1, RetryDelay: 20 * time.Second, RetryDelayMax: 20 * time.Second}, func(_ context.Context, e *consumer.Event) error {
			if e.Key == "bad" {
				return errors.New("not now")
			}
			return nil
		})
		settle(time.Second)
		d.wantHandled(t, map[string][]string{"bad": {"bad.1"}, "good": {"good.1"}})
		stop()
		d.wantOutcomes(t, "good.1 fresh handled", "bad.1 fresh abandoned")
	})
}

func TestEventsAreDeadLetteredAndDeferred(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		var mu sync.Mutex
		var number int64
		stop := d.run(t, subscriber.SessionOptions{}, func(_ context.Context, e *consumer.Event) error {
			switch e.ID {
			case "a.2":
				return fmt.Errorf("handle: %w", consumer.DeadLetter("unknown", errors.New("no such schema")))
			case "a.3":
				mu.Lock()
				defer mu.Unlock()
				number = e.SequenceNumber
				return consumer.Defer()
			}
			return nil
		})
		d.publish(t, "a", 1, 2, 3, 4)
		settle(time.Minute)
		stop()
		d.wantOutcomes(t, "a.1 fresh handled", "a.2 fresh dead_lettered", "a.3 fresh deferred", "a.4 fresh handled")
		dead, err := d.client.NewReceiverForSubscription(topic, subscription, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
		if err != nil {
			t.Fatal(err)
		}
		letters, err := dead.ReceiveMessages(t.Context(), 5, nil)
		if err != nil || len(letters) != 1 || letters[0].MessageID != "a.2" || *letters[0].DeadLetterReason != "unknown" || *letters[0].DeadLetterErrorDescription != "no such schema" {
			t.Errorf("dead letters %v, %v", letters, err)
		}
		session, err := d.client.AcceptSessionForSubscription(t.Context(), topic, subscription, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		deferred, err := session.ReceiveDeferredMessages(t.Context(), []int64{number}, nil)
		if err != nil || len(deferred) != 1 || deferred[0].MessageID != "a.3" {
			t.Errorf("deferred %v, %v", deferred, err)
		}
	})
}

func TestBrokerDeadLettersAfterTooManyDeliveries(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "a", 1, 2)
		stop := d.run(t, subscriber.SessionOptions{GapDeliveries: -1}, func(_ context.Context, e *consumer.Event) error {
			if e.ID == "a.1" {
				return errors.New("never")
			}
			return nil
		})
		settle(5 * time.Minute)
		stop()
		d.wantHandled(t, map[string][]string{"a": {"a.1", "a.1", "a.1", "a.1", "a.1", "a.2"}})
	})
}

func TestSessionState(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "a", 1, 2, 3)
		var states []string
		stop := d.run(t, subscriber.SessionOptions{}, func(ctx context.Context, e *consumer.Event) error {
			state, err := subscriber.SessionOf(ctx).State(ctx)
			if err != nil {
				return err
			}
			states = append(states, string(state))
			if e.Sequence == 2 {
				return subscriber.SessionOf(ctx).SetState(ctx, nil)
			}
			return subscriber.SessionOf(ctx).SetState(ctx, []byte(subscriber.SessionOf(ctx).ID()+e.ID))
		})
		settle(time.Second)
		stop()
		if fmt.Sprint(states) != "[ aa.1 ]" {
			t.Errorf("states %q", states)
		}
	})
}

func TestIdleSessionsAreClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		stop := d.run(t, subscriber.SessionOptions{SessionIdle: 5 * time.Second}, nil)
		d.publish(t, "a", 1)
		settle(4 * time.Second)
		another := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			s, err := d.client.AcceptSessionForSubscription(ctx, topic, subscription, "a", nil)
			if err == nil {
				err = s.Close(ctx)
			}
			return err
		}
		if err := another(); err == nil {
			t.Error("the session was closed before it was idle for 5 s")
		}
		settle(2 * time.Second)
		if err := another(); err != nil {
			t.Errorf("the session was not closed: %v", err)
		}
		stop()
	})
}

// A processor with a limit of one session handles many sessions at once, and holds only one of them idle.
func TestIdleSessionsDoNotBlockOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		want := map[string][]string{}
		for k := range 50 {
			key := fmt.Sprintf("k%d", k)
			want[key] = ids(key, 1, 1)
			d.publish(t, key, 1)
		}
		stop := d.run(t, subscriber.SessionOptions{Sessions: 1, SessionIdle: time.Hour}, nil)
		settle(time.Second)
		d.wantHandled(t, want)
		free := 0
		for key := range want {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if s, err := d.client.AcceptSessionForSubscription(ctx, topic, subscription, key, nil); err == nil {
				free++
				_ = s.Close(ctx)
			}
			cancel()
		}
		if free != 49 {
			t.Errorf("%d of 50 sessions were closed, want all but one", free)
		}
		stop()
	})
}

func TestBusySessionIsClosedAfterSessionMax(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "hot", numbers(1, 100)...)
		d.publish(t, "cold", 1)
		var turned atomic.Bool
		stop := d.run(t, subscriber.SessionOptions{Sessions: 1, SessionMax: 10 * time.Second}, func(_ context.Context, e *consumer.Event) error {
			turned.Store(turned.Load() || e.Key == "cold")
			time.Sleep(time.Second)
			return nil
		})
		time.Sleep(15 * time.Second)
		if !turned.Load() { // before the stop, which also closes the busy session
			t.Error("the other session was not handled")
		}
		stop()
		d.wantInOrder(t, map[string][]string{"hot": ids("hot", 1, len(d.handled["hot"]))})
	})
}

func TestDrainWaitsForHandlers(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "k", 1, 2)
		stop := d.run(t, subscriber.SessionOptions{}, func(ctx context.Context, _ *consumer.Event) error {
			time.Sleep(5 * time.Second)
			return ctx.Err()
		})
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("drain took %v, want the remaining 4 s of the handler", took)
		}
		d.wantOutcomes(t, "k.1 fresh handled")
		if d.left(t) != 1 {
			t.Errorf("%d messages left, want 1", d.left(t))
		}
		session, err := d.client.AcceptSessionForSubscription(t.Context(), topic, subscription, "k", nil)
		if err != nil {
			t.Errorf("the session is still held: %v", err)
			return
		}
		messages, err := session.ReceiveMessages(t.Context(), 1, nil)
		if err != nil || len(messages) != 1 || messages[0].DeliveryCount != 1 {
			t.Errorf("the remaining message is %v, %v; want its first delivery", messages, err)
		}
	})
}

func TestDrainEndsAfterItsTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "k", 1)
		var cause error
		stop := d.run(t, subscriber.SessionOptions{DrainTimeout: 3 * time.Second}, func(ctx context.Context, _ *consumer.Event) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took != 3*time.Second || !errors.Is(cause, consumer.ErrDrainTimeout) {
			t.Errorf("drain took %v with %v, want 3 s and ErrDrainTimeout", took, cause)
		}
	})
}

// Requests for sessions are canceled at the broker, so that it grants sessions to other consumers.
func TestNoSessionIsAcceptedDuringADrain(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		d.publish(t, "k", 1)
		stop := d.run(t, subscriber.SessionOptions{}, func(context.Context, *consumer.Event) error {
			time.Sleep(10 * time.Second)
			return nil
		})
		settle(time.Second)
		go stop()
		settle(time.Second)
		d.publish(t, "other", 1)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := d.client.AcceptNextSessionForSubscription(ctx, topic, subscription, nil); err != nil {
			t.Errorf("a session that got messages during the drain: %v", err)
		}
		settle(time.Minute)
	})
}
