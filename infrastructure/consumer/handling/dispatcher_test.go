package handling_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay/parkedtest"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// broker is a broker of one queue, and records the outcomes of its events.
type broker struct {
	dispatcher *handling.Dispatcher
	ctx        context.Context //nolint:containedctx // of Run
	locked     context.Context //nolint:containedctx // of the deliveries
	loseLocks  context.CancelCauseFunc

	mu           sync.Mutex // guards the fields below
	handled      []string   // in the order in which handlers returned
	outcomes     []string   // "id action"
	deadLetters  []string   // "id reason"
	fails        bool       // dead letters are refused
	resubmission string     // of the next events
	action       string     // of the next events
	deliveries   int        // of the next events, as the broker counts them; 0 means 1
}

func run(t *testing.T, o consumer.Options, handler func(ctx context.Context, e *consumer.Event) error, test func(d *broker)) {
	synctest.Test(t, func(t *testing.T) {
		d := &broker{}
		observe := o.Observe
		o.Observe = func(ctx context.Context, outcome consumer.Outcome) {
			d.observe(ctx, outcome)
			if observe != nil {
				observe(ctx, outcome)
			}
		}
		var err error
		d.dispatcher, err = handling.NewDispatcher(handling.Source{}, nil, func(ctx context.Context, e *consumer.Event) error {
			err := handler(ctx, e)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.handled = append(d.handled, e.ID)
			return err
		}, o)
		if err != nil {
			t.Fatal(err)
		}
		var stop context.CancelFunc
		d.ctx, stop = context.WithCancel(t.Context())
		ready, done := make(chan struct{}), make(chan struct{})
		d.dispatcher.WakeBy(func(_ context.Context, key string) error {
			<-ready
			d.dispatcher.Add(d.ctx, &handling.Delivery{Event: &consumer.Event{Key: key}, WakeUp: true, Context: d.locked, Complete: func(consumer.Outcome) {}})
			return nil
		})
		go func() {
			defer close(done)
			d.dispatcher.Run(d.ctx, []handling.Receiver{func(ctx, working context.Context) error {
				d.locked, d.loseLocks = context.WithCancelCause(working)
				close(ready)
				<-ctx.Done()
				return nil
			}}, func(context.Context) {})
		}()
		<-ready
		test(d)
		stop()
		<-done
		d.loseLocks(nil)
	})
}

func (d *broker) observe(_ context.Context, o consumer.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outcomes = append(d.outcomes, fmt.Sprint(o.Event.ID, " ", o.Action))
}

func (d *broker) deliver(key string, sequences ...int64) {
	for _, n := range sequences {
		e := &consumer.Event{ID: fmt.Sprint(key, n), Key: key, Sequence: n, Action: d.action, Resubmission: d.resubmission, DeliveryCount: max(1, d.deliveries), CreatedAt: time.Now()}
		d.dispatcher.Add(d.ctx, &handling.Delivery{
			Event: e, Context: d.locked, Complete: func(o consumer.Outcome) { d.dispatcher.Settled(d.ctx, o, nil) },
			DeadLetter: func(_ context.Context, reason *consumer.DeadLetterError) error {
				d.mu.Lock()
				defer d.mu.Unlock()
				if d.fails {
					return errors.New("dead-letter queue full")
				}
				d.deadLetters = append(d.deadLetters, e.ID+" "+reason.Reason)
				return nil
			},
		})
	}
}

// reconnect gives later deliveries other locks than those that were lost.
func (d *broker) reconnect() {
	d.locked, d.loseLocks = context.WithCancelCause(context.WithoutCancel(d.locked))
}

// want compares *got after a time.
func (d *broker) want(t *testing.T, name string, got *[]string, after time.Duration, want ...string) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(*got, want) {
		t.Errorf("%s %q, want %q", name, *got, want)
	}
}

func TestUnavailableHandlerSpendsNoAttempts(t *testing.T) {
	failures := 0
	run(t, consumer.Options{Attempts: 2}, func(_ context.Context, e *consumer.Event) error {
		if failures++; e.ID == "a1" && failures <= 5 {
			return fmt.Errorf("store: %w", consumer.Unavailable(errors.New("the database does not answer")))
		}
		return nil
	}, func(d *broker) {
		d.deliver("a", 1, 2)
		d.want(t, "dead letters", &d.deadLetters, 10*time.Minute)
		d.want(t, "handled", &d.handled, 0, "a1", "a1", "a1", "a1", "a1", "a1", "a2")
	})
}

func TestFailedEventBlocksOnlyItsKey(t *testing.T) {
	failures := 0
	run(t, consumer.Options{Concurrency: 1}, func(_ context.Context, e *consumer.Event) error {
		if e.ID == "a1" && e.DeliveryCount <= 2 {
			failures++
			panic("not yet")
		}
		return nil
	}, func(d *broker) {
		d.deliver("a", 1, 2)
		synctest.Wait() // with one permit, either key could be first
		d.deliver("b", 1, 2)
		d.want(t, "at once", &d.outcomes, 0, "a1 abandoned", "b1 handled", "b2 handled")
		d.want(t, "in the end", &d.outcomes, 10*time.Second, "a1 abandoned", "b1 handled", "b2 handled", "a1 abandoned", "a1 handled", "a2 handled")
	})
}

func TestKeysAreHandledInParallel(t *testing.T) {
	run(t, consumer.Options{Concurrency: 3}, func(context.Context, *consumer.Event) error {
		time.Sleep(time.Second)
		return nil
	}, func(d *broker) {
		for k := range 6 {
			d.deliver(fmt.Sprint("k", k, "."), 1, 2)
		}
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.handled) != 9 {
			t.Errorf("%d events handled after 3.5 s, want 3 each second", len(d.handled))
		}
	})
}

func TestFailedEventIsDeadLetteredAfterTenAttemptsByDefault(t *testing.T) {
	run(t, consumer.Options{}, func(context.Context, *consumer.Event) error { return errors.New("never") }, func(d *broker) {
		d.deliver("a", 1)
		d.want(t, "attempts", &d.handled, time.Hour, slices.Repeat([]string{"a1"}, 10)...)
		d.want(t, "dead letters", &d.deadLetters, 0, "a1 "+consumer.ReasonAttempts)
	})
}

func TestFinalErrorsAreDeadLettered(t *testing.T) {
	run(t, consumer.Options{Attempts: 3}, func(_ context.Context, e *consumer.Event) error {
		switch e.ID {
		case "a1":
			return errors.New("never")
		case "a2":
			return consumer.DeadLetter("unknown", nil)
		case "a3":
			return consumer.Defer()
		}
		return nil
	}, func(d *broker) {
		d.fails = true
		d.deliver("a", 1, 2, 3, 4)
		time.Sleep(time.Minute)
		d.mu.Lock()
		d.fails = false
		d.outcomes = nil
		d.mu.Unlock()
		d.want(t, "outcomes", &d.outcomes, time.Minute, "a1 dead_lettered", "a2 dead_lettered", "a3 dead_lettered", "a4 handled")
		d.want(t, "dead letters", &d.deadLetters, 0, "a1 too_many_attempts", "a2 unknown", "a3 cannot_defer")
	})
}

// The mark of the key makes a dead letter stale, so its resubmission has a mark of its own.
func TestResubmittedEventIsHandledOnceAfterLaterEvents(t *testing.T) {
	inbox := consumer.NewMemoryInbox(0)
	run(t, consumer.Options{Inbox: inbox}, func(_ context.Context, e *consumer.Event) error {
		if e.ID == "a2" && e.Resubmission != "second" {
			return consumer.DeadLetter("unknown", nil)
		}
		return nil
	}, func(d *broker) {
		d.deliver("a", 1, 2, 3)
		d.want(t, "before", &d.outcomes, time.Second, "a1 handled", "a2 dead_lettered", "a3 handled")
		for _, id := range []string{"first", "first", "second", "second"} { // the crash of an operator repeats each
			d.resubmission = id
			d.deliver("a", 2)
			synctest.Wait()
		}
		d.resubmission = "third"
		d.deliver("a", 2)
		d.resubmission = ""
		d.deliver("a", 2, 4) // in the queue together
		d.want(t, "then", &d.outcomes, time.Second, "a1 handled", "a2 dead_lettered", "a3 handled",
			"a2 dead_lettered", "a2 dropped", "a2 handled", "a2 dropped", "a2 dead_lettered", "a2 dropped", "a4 handled")
		d.resubmission = "ahead" // of the key, as after a broker has dead-lettered it
		d.deliver("a", 6)
		d.resubmission = ""
		d.deliver("a", 6, 7)
		d.want(t, "in the end", &d.handled, time.Minute, "a1", "a2", "a3", "a2", "a2", "a2", "a4", "a6", "a7")
	})
	if m, _ := inbox.Last(t.Context(), "a"); m.Sequence != 7 {
		t.Errorf("the mark of the key is %+v, want that of event 7", m)
	}
}

func TestGapDelaysEventsForALimitedTime(t *testing.T) {
	run(t, consumer.Options{}, func(context.Context, *consumer.Event) error { return nil }, func(d *broker) {
		d.deliver("a", 1, 3, 4, 2, 2, 1)
		d.want(t, "handled", &d.handled, 10*time.Second, "a1", "a2", "a3", "a4")
		d.deliver("a", 6)
		d.want(t, "in the end", &d.handled, time.Minute, "a1", "a2", "a3", "a4", "a6")
	})
}

// The broker's count includes deliveries that no handler has seen. An event is dead-lettered only after as
// many deliveries to a handler as the limit, over all processes that share the inbox.
func TestOnlyDeliveriesToAHandlerCountTowardsTheLimit(t *testing.T) {
	inbox, calls := consumer.NewMemoryInbox(0), 0
	for _, count := range []int{1, 3, 4, 100} {
		run(t, consumer.Options{Inbox: inbox}, func(context.Context, *consumer.Event) error { return nil }, func(d *broker) {
			d.dispatcher.LimitDeliveries(3)
			d.deliveries = count
			d.deliver(fmt.Sprint("fine", count, "."), 1)
			d.want(t, "dead letters of events that were only prefetched", &d.deadLetters, time.Minute)
			counted, err := inbox.Last(t.Context(), fmt.Sprint("deliveries:fine", count, ".1"))
			if err != nil || counted.Sequence != int64(min(1, count/4)) {
				t.Errorf("delivery %d is counted as %d in the inbox, %v; want it counted from delivery 4 on", count, counted.Sequence, err)
			}
		})
	}
	for process := range 4 {
		run(t, consumer.Options{Inbox: inbox, Attempts: -1, DrainTimeout: time.Second}, func(ctx context.Context, _ *consumer.Event) error {
			calls++
			<-ctx.Done() // the process dies here
			return context.Cause(ctx)
		}, func(d *broker) {
			d.dispatcher.LimitDeliveries(3)
			d.deliveries = 50 + process
			d.deliver("a", 1)
			var want []string
			if process >= 3 {
				want = []string{"a1 too_many_deliveries"}
			}
			d.want(t, fmt.Sprint("process ", process), &d.deadLetters, time.Minute, want...)
			d.loseLocks(consumer.ErrLockLost)
		})
	}
	if calls != 3 {
		t.Errorf("%d calls of the handler, want 3", calls)
	}
}

// The process lives, and knows the result of each attempt. The limit is for events whose processes died.
func TestRetriesOfOneDeliverySpendNoDeliveriesOfTheLimit(t *testing.T) {
	calls := 0
	run(t, consumer.Options{Attempts: -1}, func(context.Context, *consumer.Event) error {
		if calls++; calls < 20 {
			return errors.New("not now")
		}
		return nil
	}, func(d *broker) {
		d.dispatcher.LimitDeliveries(3)
		d.deliver("a", 1)
		d.want(t, "dead letters", &d.deadLetters, time.Hour)
		if calls != 20 {
			t.Errorf("%d attempts, want 19 that fail and one", calls)
		}
	})
}

// During an outage of the handler the broker closes the channel again and again, such as RabbitMQ after each
// consumer_timeout. An error of Unavailable is a result of the delivery, and says nothing about the event.
func TestUnavailableHandlerSpendsNoDeliveriesOfTheLimit(t *testing.T) {
	inbox, down := consumer.NewMemoryInbox(0), true
	run(t, consumer.Options{Inbox: inbox, Attempts: -1}, func(context.Context, *consumer.Event) error {
		if down {
			return consumer.Unavailable(errors.New("the database does not answer"))
		}
		return nil
	}, func(d *broker) {
		d.dispatcher.LimitDeliveries(3)
		for n := range 10 {
			d.deliveries = n + 1
			d.deliver("a", 1)
			time.Sleep(30 * time.Minute)
			d.loseLocks(consumer.ErrLockLost)
			synctest.Wait()
			d.reconnect()
		}
		d.want(t, "dead letters", &d.deadLetters, 0)
		down = false
		d.mu.Lock()
		d.handled = nil
		d.mu.Unlock()
		d.deliver("a", 1)
		d.want(t, "handled after the outage", &d.handled, time.Minute, "a1")
	})
}

// An event with a lost lock is not handled. Its redelivery waits until the running handler of the key
// has returned, so that the inbox detects a duplicate.
func TestRedeliveryWaitsForTheRunningHandler(t *testing.T) {
	var cause error
	run(t, consumer.Options{}, func(ctx context.Context, e *consumer.Event) error {
		if e.ID == "a1" {
			time.Sleep(5 * time.Second) // ignores ctx
			cause = context.Cause(ctx)
		}
		return nil
	}, func(d *broker) {
		d.deliver("a", 1, 2, 3)
		time.Sleep(time.Second)
		d.loseLocks(consumer.ErrLockLost)
		d.reconnect()
		d.deliver("a", 1, 2, 3)
		d.want(t, "handled", &d.handled, time.Minute, "a1", "a2", "a3")
		d.want(t, "outcomes", &d.outcomes, 0, "a1 handled", "a1 dropped", "a2 handled", "a3 handled")
		if !errors.Is(cause, consumer.ErrLockLost) {
			t.Errorf("the handler's context ended with %v", cause)
		}
	})
}

// Another process may have handled the event, and later ones, between the loss of the lock and the redelivery.
func TestRedeliveryAfterAFailedHandlerReadsTheMark(t *testing.T) {
	inbox := consumer.NewMemoryInbox(0)
	run(t, consumer.Options{Inbox: inbox}, func(ctx context.Context, e *consumer.Event) error {
		if e.ID == "a1" {
			time.Sleep(5 * time.Second)
			return context.Cause(ctx)
		}
		return nil
	}, func(d *broker) {
		d.deliver("a", 1, 2, 3)
		time.Sleep(time.Second)
		d.loseLocks(consumer.ErrLockLost)
		for n := range int64(2) { // another process handles a1 and a2, and ends before they are settled
			if err := inbox.Record(t.Context(), "a", consumer.Mark{Sequence: n + 1, EventID: fmt.Sprint("a", n+1)}); err != nil {
				t.Error(err)
			}
		}
		d.reconnect()
		d.deliver("a", 1, 2, 3)
		d.want(t, "outcomes", &d.outcomes, time.Minute, "a1 abandoned", "a1 dropped", "a2 dropped", "a3 handled")
		d.want(t, "handled", &d.handled, 0, "a1", "a3")
	})
}

// The handler that held the key succeeds after the loss of its lock, and records an earlier mark than that of the
// other process.
func TestRedeliveryAfterALateHandlerReadsTheMark(t *testing.T) {
	inbox := consumer.NewMemoryInbox(0)
	run(t, consumer.Options{Inbox: inbox}, func(_ context.Context, e *consumer.Event) error {
		if e.ID == "a1" {
			time.Sleep(5 * time.Second) // ignores ctx
		}
		return nil
	}, func(d *broker) {
		d.deliver("a", 1)
		time.Sleep(time.Second)
		d.loseLocks(consumer.ErrLockLost)
		for n := range int64(2) { // another process handles a1 and a2, and ends before a2 is settled
			if err := inbox.Record(t.Context(), "a", consumer.Mark{Sequence: n + 1, EventID: fmt.Sprint("a", n+1)}); err != nil {
				t.Error(err)
			}
		}
		d.reconnect()
		d.deliver("a", 2, 3)
		d.want(t, "outcomes", &d.outcomes, time.Minute, "a1 handled", "a2 dropped", "a3 handled")
		d.want(t, "handled", &d.handled, 0, "a1", "a3")
	})
}

// Another process parks the event meanwhile, so the later ones of its key wait for it.
func TestRedeliveryAfterAFailedHandlerReadsTheGate(t *testing.T) {
	store, inbox := parkedtest.NewMemory(), consumer.NewMemoryInbox(0)
	run(t, consumer.Options{Inbox: inbox, Park: store}, func(ctx context.Context, e *consumer.Event) error {
		if e.ID == "a1" {
			time.Sleep(5 * time.Second)
			return context.Cause(ctx)
		}
		return nil
	}, func(d *broker) {
		d.deliver("a", 1)
		time.Sleep(time.Second)
		d.loseLocks(consumer.ErrLockLost)
		other, done := context.WithCancel(d.ctx)
		b, err := handling.NewDispatcher(handling.Source{}, nil, func(context.Context, *consumer.Event) error { return consumer.DeadLetter("unknown_schema", nil) }, consumer.Options{Inbox: inbox, Park: store})
		if err != nil {
			t.Fatal(err)
		}
		b.Add(other, &handling.Delivery{Event: &consumer.Event{ID: "a1", Key: "a", Sequence: 1, DeliveryCount: 1}, Context: other, Complete: func(consumer.Outcome) {}})
		time.Sleep(time.Second)
		done()
		if got := fmt.Sprint(parkedIDs(store, "a")); got != "[a1]" {
			t.Fatalf("parked %s", got)
		}
		d.reconnect()
		d.deliver("a", 2) // the broker has settled a1
		d.want(t, "handled", &d.handled, time.Minute, "a1")
		if got := fmt.Sprint(parkedIDs(store, "a")); got != "[a1 a2]" {
			t.Errorf("parked %s, want a2 behind a1", got)
		}
	})
}

func TestDrainFinishesHandlersAndStartsNone(t *testing.T) {
	began := time.Time{}
	var cause error
	run(t, consumer.Options{DrainTimeout: 3 * time.Second}, func(ctx context.Context, e *consumer.Event) error {
		if e.ID == "a1" {
			time.Sleep(2 * time.Second)
			return nil
		}
		<-ctx.Done()
		cause = context.Cause(ctx)
		return ctx.Err()
	}, func(d *broker) {
		d.deliver("a", 1, 2)
		d.deliver("b", 1)
		synctest.Wait()
		began = time.Now()
		t.Cleanup(func() {
			if !slices.Equal(d.outcomes, []string{"a1 handled", "b1 abandoned"}) {
				t.Errorf("outcomes %q", d.outcomes)
			}
		})
	})
	if !errors.Is(cause, consumer.ErrDrainTimeout) || began.IsZero() {
		t.Errorf("the handler's context ended with %v", cause)
	}
}

// A receiver is called again at once after success and with a growing backoff after failures.
func TestReceiverIsRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dispatcher, err := handling.NewDispatcher(handling.Source{}, nil, func(context.Context, *consumer.Event) error { return nil }, consumer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		unavailable := errors.New("broker unavailable")
		answers := []error{unavailable, unavailable, nil, unavailable, nil}
		var pauses []time.Duration // before each call
		last, released := time.Now(), false
		dispatcher.Run(ctx, []handling.Receiver{func(context.Context, context.Context) error {
			pauses = append(pauses, time.Since(last).Round(time.Second))
			last = time.Now()
			n := len(pauses) - 1
			if n == len(answers) {
				stop()
				return unavailable
			}
			return answers[n]
		}}, func(context.Context) { released = true })
		if !released || len(pauses) != 6 {
			t.Fatalf("released: %v; paused %v", released, pauses)
		}
		for i, want := range []time.Duration{0, time.Second, 2 * time.Second, 0, time.Second, 0} {
			if pauses[i] != want {
				t.Errorf("paused %v before call %d, want about %v", pauses[i], i, want)
			}
		}
	})
}

func TestInboxFailuresDoNotCountAsAttempts(t *testing.T) {
	for _, fails := range []string{"Last", "Record"} {
		box := &failing{Inbox: consumer.NewMemoryInbox(0), fails: fails}
		run(t, consumer.Options{Inbox: box, Attempts: 2}, func(context.Context, *consumer.Event) error { return nil }, func(d *broker) {
			box.until = time.Now().Add(10 * time.Minute)
			d.deliver("a", 1)
			handled := func() bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				return slices.Contains(d.outcomes, "a1 handled")
			}
			time.Sleep(9 * time.Minute)
			if handled() {
				t.Errorf("%s: handled while the inbox was unavailable", fails)
			}
			d.want(t, fails+": dead letters", &d.deadLetters, 2*time.Minute)
			if box.failures < 15 || box.failures > 60 {
				t.Errorf("%s: %d failed calls in 10 minutes, want about 30 with pauses up to 30 s", fails, box.failures)
			}
			if !handled() {
				t.Errorf("%s: not handled after the inbox recovered", fails)
			}
		})
	}
}

// AMQP clients encode small integers in fewer bytes. A property of another type is one of another program.
func TestPropertiesOfTheRelayAreReadInAnyWidth(t *testing.T) {
	for _, seven := range []any{7, int64(7), int32(7), int16(7), int8(7), uint32(7), uint16(7), uint8(7)} {
		e := consumer.Event{ID: "e1", Properties: map[string]any{
			consumer.PropertyKey: "k", consumer.PropertyTraceparent: "00-1-2-01", consumer.PropertySequence: seven, consumer.PropertyAggregateVersion: seven, "other": "x",
		}}
		want := consumer.Event{ID: "e1", Properties: e.Properties, Key: "k", Traceparent: "00-1-2-01", Sequence: 7, AggregateVersion: 7}
		if handling.ReadProperties(&e); !reflect.DeepEqual(e, want) {
			t.Errorf("%T: %+v, want %+v", seven, e, want)
		}
	}
	e := consumer.Event{ID: "e1", Key: "session", Sequence: 9, Properties: map[string]any{
		consumer.PropertyKey: 7, consumer.PropertyTraceparent: true, consumer.PropertySequence: "7", consumer.PropertyAggregateVersion: 7.5,
	}}
	want := consumer.Event{ID: "e1", Properties: e.Properties}
	if handling.ReadProperties(&e); !reflect.DeepEqual(e, want) {
		t.Errorf("properties of other types: %+v, want %+v", e, want)
	}
}

func TestTimeOfCreationIsUnknownUnlessItIsValid(t *testing.T) {
	for text, want := range map[any]time.Time{
		"2026-01-31T08:00:03.4125Z": time.Date(2026, 1, 31, 8, 0, 3, 412_500_000, time.UTC), "yesterday": {}, nil: {}, 7: {},
	} {
		e := consumer.Event{CreatedAt: time.Unix(1, 0)}
		if handling.ReadCreation(&e, text); !e.CreatedAt.Equal(want) {
			t.Errorf("%v is read as %s, want %s", text, e.CreatedAt, want)
		}
	}
}

// failing is an inbox with one method that fails until a time.
type failing struct {
	consumer.Inbox
	fails string
	until time.Time

	failures int
}

func (f *failing) err(method string) error {
	if method == f.fails && time.Now().Before(f.until) {
		f.failures++
		return errors.New("inbox unavailable")
	}
	return nil
}

func (f *failing) Last(ctx context.Context, key string) (consumer.Mark, error) {
	if err := f.err("Last"); err != nil {
		return consumer.Mark{}, err
	}
	return f.Inbox.Last(ctx, key)
}

func (f *failing) Record(ctx context.Context, key string, m consumer.Mark) error {
	if err := f.err("Record"); err != nil {
		return err
	}
	return f.Inbox.Record(ctx, key, m)
}

// A handler that ends its process leaves no error behind. Its deliveries are counted in the inbox, after as
// many that the broker alone has counted.
func TestDeliveriesWithoutAResultAreLimited(t *testing.T) {
	for _, limit := range []int{0, 1, 3} {
		calls := 0
		k := handling.KeyProcessor{Inbox: consumer.NewMemoryInbox(0), DeliveryLimit: limit, Runner: &handling.Runner{
			Handler: func(context.Context, *consumer.Event) error {
				calls++
				return errors.New("killed")
			},
		}}
		if err := errors.Join(k.Init(), k.Load(t.Context(), "k")); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for n := 1; n <= 10 && refused == 0; n++ {
			out := consumer.Outcome{Event: &consumer.Event{ID: "e1", Key: "k", Sequence: 1, DeliveryCount: n}}
			k.Process(t.Context(), &out, &handling.Progress{})
			if dead, ok := errors.AsType[*consumer.DeadLetterError](out.Err); ok && dead.Reason == consumer.ReasonDeliveries {
				refused = n
			}
		}
		if want := 2 * limit; limit > 0 && (calls != want || refused != want+1) || limit == 0 && (calls != 10 || refused != 0) {
			t.Errorf("limit %d: %d calls, delivery %d is refused", limit, calls, refused)
		}
	}
}
