package handling_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

func intent(t *testing.T, store *parkedtest.Memory, key string, i relay.Intent) {
	t.Helper()
	i.At = time.Now()
	if _, err := store.SetIntent(t.Context(), key, i); err != nil {
		t.Fatal(err)
	}
}

func TestRefusedEventParksItsKeyAndARetryHandlesItInOrder(t *testing.T) {
	store, inbox, refuse := parkedtest.NewMemory(), consumer.NewMemoryInbox(0), true
	var log strings.Builder
	run(t, consumer.Options{Park: store, Inbox: inbox, Attempts: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(_ context.Context, e *consumer.Event) error {
		switch {
		case e.ID == "a1" && refuse:
			return consumer.DeadLetter("unknown_schema", errors.New("version 9"))
		case e.ID == "b1" && refuse:
			return errors.New("never")
		}
		return nil
	}, func(d *broker) {
		d.action = "Paid"
		d.deliver("a", 1, 2)
		d.deliver("b", 1, 2)
		d.deliver("c", 1)
		time.Sleep(time.Minute)
		d.deliver("a", 3, 3, 1, 5)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := fmt.Sprint(d.deadLetters, parkedIDs(store, "a"), parkedIDs(store, "b")); got != "[] [a1 a2 a3 a5] [b1 b2]" {
			t.Fatalf("dead letters and parked events %s", got)
		}
		g, err := store.Gate(t.Context(), "a")
		if err != nil || g.Closing.Event != "a1" || g.Closing.Reason != "unknown_schema" || g.Closing.Error != "version 9" {
			t.Errorf("gate %+v, %v", g, err)
		}
		line, err := store.First(t.Context(), "b", 9, 1<<20)
		if err != nil || len(line) != 2 {
			t.Fatalf("%+v, %v", line, err)
		}
		for i, want := range []relay.ParkedEvent{
			{ID: "b1", Key: "b", Action: "Paid", Sequence: 1, Reason: consumer.ReasonAttempts, Error: "never", Attempts: 2},
			{ID: "b2", Key: "b", Action: "Paid", Sequence: 2, Reason: "held"},
		} {
			got := line[i]
			if got.Document == nil || got.ParkedAt.IsZero() {
				t.Errorf("without document or time: %+v", got)
			}
			got.Document, got.ParkedAt, got.Position, got.InOrder, got.Closing = nil, time.Time{}, 0, false, nil
			if !reflect.DeepEqual(got, want) {
				t.Errorf("parked %+v, want %+v", got, want)
			}
		}
		d.handled = nil
		intent(t, store, "a", relay.Intent{Verb: relay.VerbRetry})
		time.Sleep(time.Minute)
		if g, _ = store.Gate(t.Context(), "a"); g.Intent != nil || g.Attempts != 1 || !strings.Contains(g.Error, "version 9") {
			t.Errorf("gate after a refused retry %+v", g)
		}
		refuse = false
		intent(t, store, "a", relay.Intent{Verb: relay.VerbRetry})
		intent(t, store, "b", relay.Intent{Verb: relay.VerbSkip, Event: "b1", By: "ann"})
		time.Sleep(2 * time.Minute)
		d.deliver("a", 6, 1)
		d.deliver("b", 3, 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		of := func(key string) []string {
			return slices.DeleteFunc(slices.Clone(d.handled), func(id string) bool { return !strings.HasPrefix(id, key) })
		}
		if got := fmt.Sprint(of("a"), of("b")); got != "[a1 a1 a2 a3 a5 a6] [b2 b3]" {
			t.Errorf("handled %s", got)
		}
	})
	if closed, _ := store.Closed(t.Context()); len(closed) != 0 {
		t.Errorf("keys %v are still parked", closed)
	}
	if n := strings.Count(log.String(), "event parked"); n != 2 { // by a1 and b1, for all that wait for them
		t.Errorf("%d warnings of two keys that were parked:\n%s", n, log.String())
	}
}

// A retry of parked events during an outage of the handler is repeated until the outage ends.
func TestRetryOutlivesAnOutageOfTheHandler(t *testing.T) {
	store, answer := parkedtest.NewMemory(), atomic.Pointer[error]{}
	answer.Store(new(consumer.DeadLetter("unknown_schema", nil)))
	run(t, consumer.Options{Park: store}, func(context.Context, *consumer.Event) error { return *answer.Load() }, func(d *broker) {
		d.deliver("a", 1, 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		answer.Store(new(consumer.Unavailable(errors.New("the database does not answer"))))
		intent(t, store, "a", relay.Intent{Verb: relay.VerbRetry})
		time.Sleep(time.Hour)
		synctest.Wait()
		if g, err := store.Gate(t.Context(), "a"); err != nil || g.Intent == nil || g.Attempts != 0 || g.Events != 2 {
			t.Errorf("gate during the outage %+v, %v", g, err)
		}
		d.mu.Lock()
		d.handled = nil
		d.mu.Unlock()
		answer.Store(new(error))
		d.want(t, "handled", &d.handled, time.Minute, "a1", "a2")
	})
}

// Events of several keys fail again for reasons of their own, while those of other keys are handled. The operator of
// each retry must learn that, and the handler must not be called for ever.
func TestRetriesOfSeveralKeysThatFailAgainEnd(t *testing.T) {
	store, calls := parkedtest.NewMemory(), map[string]int{}
	run(t, consumer.Options{Park: store, Attempts: 1}, func(_ context.Context, e *consumer.Event) error {
		if e.Key == "fine" {
			return nil
		}
		calls[e.Key]++
		return errors.New("amount is negative")
	}, func(d *broker) {
		for n, key := range []string{"a", "b", "c", "d"} {
			d.deliver(key, 1)
			time.Sleep(time.Minute)
			intent(t, store, key, relay.Intent{Verb: relay.VerbRetry})
			time.Sleep(time.Minute)
			d.deliver("fine", int64(n+1))
			time.Sleep(time.Hour)
			synctest.Wait()
			g, err := store.Gate(t.Context(), key)
			if err != nil || g.Intent != nil || g.Attempts != 1 || !strings.Contains(g.Error, "negative") || calls[key] != 4 {
				t.Errorf("key %s after an hour: intent %+v, %d abandoned drains, error %q, %d calls of the handler; want no intent, the error and 4 calls; %v", key, g.Intent, g.Attempts, g.Error, calls[key], err)
			}
		}
	})
}

func parkedIDs(store *parkedtest.Memory, key string) (ids []string) {
	events, _ := store.First(context.Background(), key, 1000, 1<<30)
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// faulty is a store, and an inbox, whose requests fail if fails returns an error for their names.
type faulty struct {
	*parkedtest.Memory
	*consumer.MemoryInbox
	fails func(request string) error
}

func (f faulty) Record(ctx context.Context, key string, m consumer.Mark) error {
	if err := f.fails("record " + key); err != nil {
		return err
	}
	return f.MemoryInbox.Record(ctx, key, m)
}

func (f faulty) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (relay.ParkResult, error) {
	if err := f.fails("park"); err != nil {
		return relay.ParkResult{}, err
	}
	return f.Memory.Park(ctx, key, events, closing)
}

func (f faulty) Remove(ctx context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (relay.Gate, error) {
	if err := f.fails("remove"); err != nil {
		return g, err
	}
	return f.Memory.Remove(ctx, g, events, skipped)
}

// parkAndCrash parks event a1, and ends the consumer before that is recorded in the inbox.
func parkAndCrash(t *testing.T) (faulty, consumer.Options) {
	t.Helper()
	parks := false
	f := faulty{parkedtest.NewMemory(), consumer.NewMemoryInbox(0), func(request string) error {
		if parks = parks || request == "park"; parks && request == "record a" {
			return errors.New("crash")
		}
		return nil
	}}
	o := consumer.Options{Park: f, Inbox: f}
	run(t, o, func(context.Context, *consumer.Event) error { return consumer.DeadLetter("unknown", nil) }, func(d *broker) {
		d.deliver("a", 1)
		d.want(t, "settled", &d.deadLetters, time.Minute)
	})
	if got := fmt.Sprint(parkedIDs(f.Memory, "a")); got != "[a1]" {
		t.Fatalf("parked %s", got)
	}
	f.fails = func(string) error { return nil }
	o.Park, o.Inbox = f, f
	return f, o
}

func accept(context.Context, *consumer.Event) error { return nil }

func TestCrashOfAConsumerLeavesItsKeyParked(t *testing.T) {
	f, o := parkAndCrash(t)
	run(t, o, accept, func(d *broker) {
		d.deliver("a", 1, 2)
		d.want(t, "handled", &d.handled, time.Minute)
		d.want(t, "outcomes", &d.outcomes, 0, "a1 parked", "a2 parked")
	})
	run(t, o, accept, func(d *broker) {
		d.deliver("a", 3)
		d.want(t, "handled", &d.handled, time.Minute)
	})
	if got := fmt.Sprint(parkedIDs(f.Memory, "a")); got != "[a1 a2 a3]" {
		t.Errorf("parked %s", got)
	}
}

func TestSkippedEventIsNotHandledWhenItIsRedelivered(t *testing.T) {
	f, o := parkAndCrash(t)
	intent(t, f.Memory, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a1"})
	run(t, o, accept, func(d *broker) {
		time.Sleep(time.Minute)
		d.deliver("a", 1, 2)
		d.want(t, "handled", &d.handled, time.Minute, "a2")
	})
}

// A retry waits for the next query of the store.
func TestParkedPollDelaysARetry(t *testing.T) {
	store, refuse := parkedtest.NewMemory(), true
	run(t, consumer.Options{Park: store, ParkedPoll: time.Hour}, func(context.Context, *consumer.Event) error {
		if refuse {
			return consumer.DeadLetter("unknown_schema", nil)
		}
		return nil
	}, func(d *broker) {
		d.deliver("a", 1)
		time.Sleep(time.Second)
		synctest.Wait()
		refuse = false
		intent(t, store, "a", relay.Intent{Verb: relay.VerbRetry})
		d.want(t, "handled", &d.handled, 40*time.Minute, "a1") // with a jitter of 20 %
		d.want(t, "handled", &d.handled, 40*time.Minute, "a1", "a1")
	})
	if _, err := handling.NewDispatcher(handling.Source{}, nil, func(context.Context, *consumer.Event) error { return nil }, consumer.Options{Park: store, ParkedPoll: -1}); err == nil {
		t.Error("a negative ParkedPoll is accepted")
	}
}

// Each poll finds the intents of keys that another process owns. It wakes that owner at every second poll
// only, because the message may still be on its way.
func TestOwnersOfParkedKeysAreWokenAtEverySecondPoll(t *testing.T) {
	store := parkedtest.NewMemory()
	for _, key := range []string{"a", "b", "c"} {
		if _, err := store.Park(t.Context(), key, []relay.ParkedEvent{{ID: key + "1", Key: key, Sequence: 1}}, &relay.Closing{Event: key + "1", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		intent(t, store, key, relay.Intent{Verb: relay.VerbRetry})
	}
	synctest.Test(t, func(t *testing.T) {
		d, err := handling.NewDispatcher(handling.Source{}, nil, accept, consumer.Options{Park: store, ParkedPoll: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex // guards woken, because keys are drained in parallel
		woken := map[string]int{}
		d.WakeBy(func(_ context.Context, key string) error {
			mu.Lock()
			defer mu.Unlock()
			woken[key]++
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		d.Run(ctx, []handling.Receiver{func(ctx, _ context.Context) error {
			<-ctx.Done()
			return nil
		}}, func(context.Context) {})
		for _, key := range []string{"a", "b", "c"} {
			if n := woken[key]; n < 15 || n > 35 {
				t.Errorf("key %s: its owner was woken %d times in 60 polls", key, n)
			}
		}
	})
}

// A retry calls a handler that fails three times, with the pauses of a delivery.
func TestAttemptsOfARetryHavePauses(t *testing.T) {
	store, began := parkedtest.NewMemory(), []time.Time(nil)
	failure := consumer.DeadLetter("unknown_schema", nil)
	run(t, consumer.Options{Park: store, RetryDelay: time.Second}, func(context.Context, *consumer.Event) error {
		began = append(began, time.Now())
		return failure
	}, func(d *broker) {
		d.deliver("a", 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		began, failure = nil, errors.New("not yet")
		intent(t, store, "a", relay.Intent{Verb: relay.VerbRetry})
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(began) != 3 || began[1].Sub(began[0]) < 800*time.Millisecond || began[2].Sub(began[1]) < 1600*time.Millisecond {
			t.Errorf("attempts at %v", began)
		}
	})
}

func TestParkedEventIsHandledOnceIfItsRemovalFails(t *testing.T) {
	f, o := parkAndCrash(t)
	failed := false
	f.fails = func(request string) error {
		if request == "remove" && !failed {
			failed = true
			return errors.New("crash")
		}
		return nil
	}
	o.Park = f
	intent(t, f.Memory, "a", relay.Intent{Verb: relay.VerbRetry})
	run(t, o, accept, func(d *broker) {
		time.Sleep(time.Minute)
		d.deliver("a", 1, 2)
		d.want(t, "handled", &d.handled, time.Minute, "a1", "a2")
	})
	if !failed {
		t.Error("the removal did not fail")
	}
}

// A parked event is handled, and its process ends before the key has the mark of it. The broker delivers the
// event again, because the process that parked it has not settled it.
func TestCrashAfterTheMarkOfAParkedEvent(t *testing.T) {
	f, o := parkAndCrash(t)
	failed := false
	f.fails = func(request string) error {
		if request == "record a" && !failed {
			failed = true
			return errors.New("crash")
		}
		return nil
	}
	o.Park, o.Inbox = f, f
	intent(t, f.Memory, "a", relay.Intent{Verb: relay.VerbRetry})
	run(t, o, accept, func(d *broker) {
		time.Sleep(time.Minute)
		d.deliver("a", 1, 2)
		d.want(t, "handled", &d.handled, time.Minute, "a1", "a2")
	})
	if closed, _ := f.Closed(t.Context()); !failed || len(closed) > 0 {
		t.Errorf("failed: %t, parked: %s", failed, closed)
	}
}

// The store of events failed over: event 3 of the key is another one than the parked event 3.
func TestForkOfAParkedKeyKeepsTheOrderOfArrival(t *testing.T) {
	store := parkedtest.NewMemory()
	run(t, consumer.Options{Park: store}, func(context.Context, *consumer.Event) error { return consumer.DeadLetter("unknown", nil) }, func(d *broker) {
		d.deliver("a", 2, 3, 4)
		for _, n := range []int64{3, 4, 5} {
			d.dispatcher.Add(d.ctx, &handling.Delivery{
				Event: &consumer.Event{ID: fmt.Sprint("other", n), Key: "a", Sequence: n}, Context: d.locked, Complete: func(consumer.Outcome) {},
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
	})
	if got := fmt.Sprint(parkedIDs(store, "a")); got != "[a2 a3 a4 other3 other4 other5]" {
		t.Errorf("parked %s", got)
	}
}

func TestEventIsNotSettledUnlessItIsParked(t *testing.T) {
	f := faulty{parkedtest.NewMemory(), consumer.NewMemoryInbox(0), func(request string) error {
		if request == "park" {
			return errors.New("store unavailable")
		}
		return nil
	}}
	run(t, consumer.Options{Park: f, Inbox: f}, func(context.Context, *consumer.Event) error { return consumer.DeadLetter("unknown", nil) }, func(d *broker) {
		d.deliver("a", 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(d.outcomes) < 3 || slices.ContainsFunc(d.outcomes, func(o string) bool { return o != "a1 abandoned" }) {
			t.Errorf("outcomes %q, want retries only", d.outcomes)
		}
	})
}

// Consumer A has refused event a1 and is frozen before it parks it. Its lock expires, and B handles the
// event. Then A goes on.
func TestEventThatAnotherProcessHasHandledIsNotParked(t *testing.T) {
	store, inbox := parkedtest.NewMemory(), consumer.NewMemoryInbox(0)
	frozen := faulty{store, inbox, func(string) error { return nil }}
	frozen.fails = func(request string) error {
		if request == "record a" {
			return inbox.Record(t.Context(), "a", consumer.Mark{Sequence: 1, EventID: "a1"}) // B
		}
		return nil
	}
	run(t, consumer.Options{Park: frozen, Inbox: frozen}, func(context.Context, *consumer.Event) error { return consumer.DeadLetter("unknown", nil) }, func(d *broker) {
		d.deliver("a", 1)
		d.want(t, "outcomes", &d.outcomes, time.Minute, "a1 abandoned", "a1 dropped")
	})
	if got := parkedIDs(store, "a"); len(got) > 0 {
		t.Errorf("parked %s", got)
	}
}

// A request to park that arrives late closes the gate again, but a retry does not repeat the event.
func TestEventThatIsParkedTwiceIsHandledOnce(t *testing.T) {
	f, o := parkAndCrash(t)
	again, err := f.First(t.Context(), "a", 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	late := func(t *testing.T) {
		t.Helper()
		if _, err := f.Memory.Park(t.Context(), "a", again, &relay.Closing{Event: "a1", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, o, accept, func(d *broker) {
		for range 3 {
			intent(t, f.Memory, "a", relay.Intent{Verb: relay.VerbRetry})
			time.Sleep(time.Minute)
			late(t)
		}
		intent(t, f.Memory, "a", relay.Intent{Verb: relay.VerbRetry})
		time.Sleep(time.Minute)
		d.deliver("a", 1, 2)
		d.want(t, "handled", &d.handled, time.Minute, "a1", "a2")
	})
	if closed, _ := f.Closed(t.Context()); len(closed) > 0 {
		t.Errorf("keys %s are still parked", closed)
	}
}

// An owner that has announced to park an event ends before it does. Later owners must park it, because its
// request may still be on its way.
func TestAnnouncedEventIsParkedByTheNextOwner(t *testing.T) {
	store, inbox := parkedtest.NewMemory(), consumer.NewMemoryInbox(0)
	crashed := faulty{store, inbox, func(request string) error {
		if request == "park" {
			return errors.New("crash")
		}
		return nil
	}}
	run(t, consumer.Options{Park: crashed, Inbox: crashed}, func(context.Context, *consumer.Event) error { return consumer.DeadLetter("unknown_schema", nil) }, func(d *broker) {
		d.deliver("a", 1)
		d.want(t, "handled", &d.handled, time.Minute, "a1")
	})
	run(t, consumer.Options{Inbox: inbox}, accept, func(d *broker) {
		d.deliver("a", 1)
		d.want(t, "handled without parking", &d.handled, time.Minute)
		if len(d.outcomes) == 0 || slices.ContainsFunc(d.outcomes, func(o string) bool { return o != "a1 abandoned" }) {
			t.Errorf("outcomes %q", d.outcomes)
		}
	})
	run(t, consumer.Options{Park: store, Inbox: inbox}, accept, func(d *broker) {
		d.deliver("a", 1, 2)
		d.want(t, "handled", &d.handled, time.Minute)
		if g, err := store.Gate(t.Context(), "a"); err != nil || g.Closing.Reason != consumer.ReasonUnknown || g.Events != 2 {
			t.Errorf("gate %+v, %v", g, err)
		}
		intent(t, store, "a", relay.Intent{Verb: relay.VerbRetry})
		d.want(t, "handled", &d.handled, time.Minute, "a1", "a2")
	})
}

// A handler is called with an event that another process announces meanwhile, so the inbox refuses its writes.
func TestEventThatIsBeingParkedIsReadAgain(t *testing.T) {
	store, inbox := parkedtest.NewMemory(), consumer.NewMemoryInbox(0)
	run(t, consumer.Options{Park: store, Inbox: inbox, Attempts: 1}, func(ctx context.Context, e *consumer.Event) error {
		if err := inbox.Record(ctx, "a", consumer.Mark{Parking: "a1"}); err != nil {
			t.Error(err)
		}
		last, _ := inbox.Last(ctx, "a")
		return last.MayHandle(e)
	}, func(d *broker) {
		d.deliver("a", 1)
		d.want(t, "outcomes", &d.outcomes, time.Minute, "a1 abandoned", "a1 parked")
	})
}

// Consumer A finds the key parked and is frozen before it parks event a2 too. Meanwhile B drains the key,
// handles a2, and a later event is refused.
func TestEventIsHeldOnlyBehindTheGateThatWasRead(t *testing.T) {
	store, inbox, parks := parkedtest.NewMemory(), consumer.NewMemoryInbox(0), 0
	frozen := faulty{store, inbox, nil}
	var during func()
	frozen.fails = func(request string) error {
		if request != "park" {
			return nil
		}
		if parks++; parks == 2 {
			during()
		}
		return nil
	}
	run(t, consumer.Options{Park: frozen, Inbox: frozen}, func(context.Context, *consumer.Event) error { return consumer.DeadLetter("unknown", nil) }, func(d *broker) {
		during = func() {
			g, _ := store.Gate(t.Context(), "a")
			first, _ := store.First(t.Context(), "a", 1, 1)
			g, err1 := store.Remove(t.Context(), g, first, nil)
			err2 := store.Open(t.Context(), g)
			err3 := inbox.Record(t.Context(), "a", consumer.Mark{Sequence: 3, EventID: "a3"})
			_, err4 := store.Park(t.Context(), "a", []relay.ParkedEvent{{ID: "a3", Sequence: 3, InOrder: true}}, &relay.Closing{Event: "a3", At: time.Now()})
			if err := errors.Join(err1, err2, err3, err4); err != nil {
				t.Error(err)
			}
		}
		d.deliver("a", 1, 2, 4)
		d.want(t, "outcomes", &d.outcomes, time.Minute, "a1 parked", "a2 dropped", "a4 parked")
	})
	if got := fmt.Sprint(parkedIDs(store, "a")); got != "[a3 a4]" {
		t.Errorf("parked %s", got)
	}
}

// The gate of a key is open again, and the inbox cannot record that. The error names the cause, and the event waits.
func TestFailedReleaseOfAKeyNamesItsCause(t *testing.T) {
	inbox := &failing{Inbox: consumer.NewMemoryInbox(0), fails: "Record"}
	if err := inbox.Record(t.Context(), "a", consumer.Mark{Sequence: 1, EventID: "a1", Parking: consumer.ParkedKey}); err != nil {
		t.Fatal(err)
	}
	causes := map[string]bool{}
	run(t, consumer.Options{Park: parkedtest.NewMemory(), Inbox: inbox, Observe: func(_ context.Context, o consumer.Outcome) {
		causes[fmt.Sprint(o.Action, ": ", o.Err)] = true
	}}, accept, func(d *broker) {
		inbox.until = time.Now().Add(time.Minute)
		d.deliver("a", 2)
		d.want(t, "handled", &d.handled, 59*time.Second)
		d.want(t, "handled", &d.handled, time.Minute, "a2")
	})
	if want := map[string]bool{"abandoned: inbox unavailable": true, "handled: <nil>": true}; !maps.Equal(causes, want) {
		t.Errorf("outcomes %v, want %v", causes, want)
	}
	if last, err := inbox.Last(t.Context(), "a"); err != nil || last.EventID != "a2" || last.Parking != "" {
		t.Errorf("the mark is %+v, %v", last, err)
	}
}

// A body that JSON would change, and properties of a broker, survive.
func FuzzParkedEventKeepsItsContent(f *testing.F) {
	f.Add([]byte(`{"a": 1}`), "text", int64(5))
	f.Add([]byte(`{"a":"<"}`), "", int64(-1))
	f.Add([]byte{0, 255}, "\xff", int64(1)<<60)
	f.Fuzz(func(t *testing.T, body []byte, text string, n int64) {
		e := &consumer.Event{
			ID: "e", Key: "k", Action: "A", Body: body, Sequence: n, AggregateVersion: n, Traceparent: "00-1-2-01", SequenceNumber: n, Replaced: n,
			CreatedAt: time.Unix(1, 2).UTC(), EnqueuedAt: time.Unix(3, 4).UTC(), Properties: map[string]any{"text": strings.ToValidUTF8(text, "?"), "n": n},
		}
		document, err := handling.EncodeEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := handling.DecodeEvent(document)
		if err == nil && string(got.Body) == string(body) {
			got.Body = e.Body // nil and empty are equal
		}
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%+v became %+v, %v", e, got, err)
		}
	})
}
