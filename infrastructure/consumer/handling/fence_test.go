package handling_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// fenced are several owners of a key, with a handler that stores its mark with its effect, as Inbox.Do does.
type fenced struct {
	store   *parkedtest.Memory
	inbox   consumer.Inbox
	effects []string
	refused map[string]bool
}

func newFenced(refused ...string) *fenced {
	f := &fenced{store: parkedtest.NewMemory(), inbox: consumer.NewMemoryInbox(0), refused: map[string]bool{}}
	for _, id := range refused {
		f.refused[id] = true
	}
	return f
}

func (f *fenced) do(ctx context.Context, e *consumer.Event) error {
	last, _ := f.inbox.Last(ctx, e.InboxKey())
	if v := consumer.Judge(last, e); v == consumer.Duplicate || v == consumer.Stale {
		return nil
	}
	if err := last.MayHandle(e); err != nil {
		return err
	}
	f.effects = append(f.effects, e.ID)
	return f.inbox.Record(ctx, e.InboxKey(), last.Next(e))
}

// owner is a process that has loaded key a.
type owner struct {
	*handling.KeyProcessor
	store consumer.ParkedStore
}

func (f *fenced) owner(t *testing.T, store consumer.ParkedStore, handler consumer.Handler) owner {
	t.Helper()
	if store == nil {
		store = f.store
	}
	r := &handling.Runner{Handler: func(ctx context.Context, e *consumer.Event) error {
		if handler != nil {
			return handler(ctx, e)
		}
		if f.refused[e.ID] {
			return consumer.DeadLetter("unknown_schema", errors.New("version 9"))
		}
		return f.do(ctx, e)
	}}
	if err := r.Init(); err != nil {
		t.Fatal(err)
	}
	p, err := handling.NewParking(store, 0, f.inbox, r)
	if err != nil {
		t.Fatal(err)
	}
	return owner{&handling.KeyProcessor{Runner: r, Inbox: f.inbox, Parking: p, GapDeliveries: -1}, store}
}

func (o owner) load(t *testing.T) owner {
	t.Helper()
	if err := o.Load(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	return o
}

// take handles or parks an event as the kits do.
func (o owner) take(t *testing.T, e *consumer.Event) consumer.Outcome {
	t.Helper()
	out := consumer.Outcome{Event: e}
	o.Process(t.Context(), &out, &handling.Progress{})
	if reason, ok := errors.AsType[*consumer.DeadLetterError](out.Err); ok {
		if out.Err = o.Park(t.Context(), e, reason, 1); out.Err == nil {
			out.Action = consumer.Parked
		}
	}
	return out
}

func numbered(n int64) *consumer.Event {
	return &consumer.Event{ID: fmt.Sprint("a", n), Key: "a", Sequence: n, DeliveryCount: 1}
}

func (f *fenced) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(f.effects, want) {
		t.Errorf("effects %q, want %q; parked %q", f.effects, want, parkedIDs(f.store, "a"))
	}
}

// slowGate is a store that is slow to read a gate.
type slowGate struct {
	*parkedtest.Memory
	during func()
}

func (s *slowGate) Gate(ctx context.Context, key string) (relay.Gate, error) {
	if during := s.during; during != nil {
		s.during = nil
		during()
	}
	return s.Memory.Gate(ctx, key)
}

// late is a store whose requests to park are kept, for the test to send.
type late struct {
	*parkedtest.Memory
	requests []func(t *testing.T)
}

func (l *late) Park(_ context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (relay.ParkResult, error) {
	l.requests = append(l.requests, func(t *testing.T) {
		t.Helper()
		if done, err := l.Memory.Park(t.Context(), key, events, closing); err != nil || len(done.Parked) == 0 {
			t.Logf("late request: %v, %v", done, err)
		}
	})
	return relay.ParkResult{}, context.DeadlineExceeded
}

// A becomes the owner with event a1, and is frozen after it has read the mark. B handles a1, and a2 is parked.
// Then A reads the gate.
func TestGateIsNotNewerThanTheMark(t *testing.T) {
	f := newFenced("a2")
	b := f.owner(t, nil, nil).load(t)
	slow := &slowGate{Memory: f.store, during: func() {
		b.take(t, numbered(1))
		b.take(t, numbered(2))
	}}
	a := f.owner(t, slow, nil).load(t)
	a.take(t, numbered(1))
	f.refused = nil
	intent(t, f.store, "a", relay.Intent{Verb: relay.VerbRetry})
	b.Parking.Drain(t.Context(), "a")
	f.want(t, "a1", "a2")
}

// A refuses a1, and its request to park is delayed. B parks a1, an operator skips it, and a2 is handled.
func TestSkippedEventIsNotHandledAfterALateRequest(t *testing.T) {
	f := newFenced("a1")
	delayed := &late{Memory: f.store}
	f.owner(t, delayed, nil).load(t).take(t, numbered(1))
	b := f.owner(t, nil, nil).load(t)
	b.take(t, numbered(1))
	intent(t, f.store, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a1"})
	b.Parking.Drain(t.Context(), "a")
	b.load(t).take(t, numbered(2))
	f.want(t, "a2")
	delayed.requests[0](t)
	f.refused = nil
	intent(t, f.store, "a", relay.Intent{Verb: relay.VerbRetry})
	b.Parking.Drain(t.Context(), "a")
	f.want(t, "a2")
}

// A1 is parked, and a request of A to hold a2 behind it is delayed. B holds a2, too, and an operator skips it.
func TestSkippedHeldEventIsNotHandledAfterALateRequest(t *testing.T) {
	f := newFenced("a1", "a2", "a3")
	b := f.owner(t, nil, nil).load(t)
	b.take(t, numbered(1))
	delayed := &late{Memory: f.store}
	f.owner(t, delayed, nil).load(t).take(t, numbered(2))
	b.take(t, numbered(2))
	b.take(t, numbered(3))
	f.refused["a1"] = false
	intent(t, f.store, "a", relay.Intent{Verb: relay.VerbRetry})
	b.Parking.Drain(t.Context(), "a") // a2 is refused
	intent(t, f.store, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a2"})
	b.Parking.Drain(t.Context(), "a") // a3 is refused
	f.want(t, "a1")
	delayed.requests[0](t)
	f.refused = nil
	intent(t, f.store, "a", relay.Intent{Verb: relay.VerbRetry})
	b.Parking.Drain(t.Context(), "a")
	f.want(t, "a1", "a3")
}

// The handler needs a system with a circuit breaker. Another process announces its event.
func TestAnnouncedEventIsNoOutageOfADependency(t *testing.T) {
	inbox := consumer.NewMemoryInbox(0)
	began, took := time.Time{}, time.Duration(0)
	o := consumer.Options{Park: parkedtest.NewMemory(), Inbox: inbox, Policies: map[string]consumer.Policy{"": {Dependency: "crm", RetryDelay: time.Minute, RetryDelayMax: time.Minute}}}
	run(t, o, func(ctx context.Context, e *consumer.Event) error {
		if e.ID == "b1" {
			took = time.Since(began)
			return nil
		}
		_ = inbox.Record(ctx, "a", consumer.Mark{Parking: "a1"}) // another process
		last, _ := inbox.Last(ctx, "a")
		return last.MayHandle(e)
	}, func(d *broker) {
		d.deliver("a", 1)
		time.Sleep(time.Second)
		began = time.Now()
		d.deliver("b", 1)
		d.want(t, "outcomes", &d.outcomes, 5*time.Minute, "a1 abandoned", "b1 handled", "a1 parked")
		if took > time.Second {
			t.Errorf("an event of another key was handled after %v", took)
		}
	})
}

// A has handled other2, a fork of a2, and refuses other3. Meanwhile B handles a2, which the relay has sent again.
func TestAnnouncementDoesNotReplaceAnotherHistory(t *testing.T) {
	f := newFenced()
	b := f.owner(t, nil, nil).load(t)
	b.take(t, numbered(1))
	b.take(t, numbered(2))
	fork := func(n int64) *consumer.Event {
		return &consumer.Event{ID: fmt.Sprint("other", n), Key: "a", Sequence: n, DeliveryCount: 1}
	}
	a := f.owner(t, nil, func(ctx context.Context, e *consumer.Event) error {
		if e.ID == "other2" {
			return f.do(ctx, e)
		}
		b.load(t).take(t, numbered(2))
		return consumer.DeadLetter("unknown", nil)
	}).load(t)
	a.take(t, fork(2))
	a.take(t, fork(3))
	if last, _ := f.inbox.Last(t.Context(), "a"); last.EventID != "a2" || last.Parking != "" || len(parkedIDs(f.store, "a")) > 0 {
		t.Errorf("mark %+v, parked %q; want that of a2", last, parkedIDs(f.store, "a"))
	}
}

// Events have no sequence. A handles f and is frozen before it records that. B announces e, and its request to
// park is delayed. A records f, and C becomes the owner.
func TestRecordOfAFormerOwnerKeepsAnAnnouncementWithoutSequences(t *testing.T) {
	f := newFenced("e")
	event := func(id string) *consumer.Event { return &consumer.Event{ID: id, Key: "a", DeliveryCount: 1} }
	delayed := &late{Memory: f.store}
	handler := func(ctx context.Context, e *consumer.Event) error {
		err := f.do(ctx, e)
		b := f.owner(t, delayed, nil).load(t)
		b.take(t, event("f"))
		b.take(t, event("e"))
		return err
	}
	f.owner(t, nil, handler).load(t).take(t, event("f"))
	f.refused = nil
	c := f.owner(t, nil, nil).load(t)
	c.take(t, event("e"))
	delayed.requests[0](t)
	intent(t, f.store, "a", relay.Intent{Verb: relay.VerbRetry})
	c.Parking.Drain(t.Context(), "a")
	f.want(t, "f", "e")
}

// The store of parked events is unavailable once, in a process that lives on.
func TestReasonOutlivesAFailureOfTheStore(t *testing.T) {
	failed, gotErr := false, false
	f := faulty{parkedtest.NewMemory(), consumer.NewMemoryInbox(0), func(request string) error {
		if request == "park" && !failed {
			failed = true
			return errors.New("store unavailable")
		}
		return nil
	}}
	o := consumer.Options{Park: f, Inbox: f, Observe: func(_ context.Context, o consumer.Outcome) {
		gotErr = gotErr || o.Action == consumer.Parked && o.Err != nil
	}}
	run(t, o, func(context.Context, *consumer.Event) error {
		return consumer.DeadLetter("unknown_schema", errors.New("version 9"))
	}, func(d *broker) {
		d.deliver("a", 1)
		d.want(t, "outcomes", &d.outcomes, time.Minute, "a1 abandoned", "a1 parked")
	})
	g, err := f.Gate(t.Context(), "a")
	if err != nil || g.Closing.Reason != "unknown_schema" || !gotErr {
		t.Errorf("closed by %+v, %v; outcome with an error: %t", g.Closing, err, gotErr)
	}
}

// A has events a1 and a2, and is frozen in the handler of a1. B becomes the owner and parks a1. A goes on: the
// inbox says that a1 was handled, and the gate was open when A read it.
func TestFormerOwnerDoesNotHandleAnEventBehindAParkedOne(t *testing.T) {
	f := newFenced("a1")
	b := f.owner(t, nil, nil)
	frozen := func(ctx context.Context, e *consumer.Event) error {
		if e.ID == "a1" {
			b.load(t).take(t, numbered(1)) // B
		}
		return f.do(ctx, e)
	}
	a := f.owner(t, nil, frozen).load(t)
	a.take(t, numbered(1))
	a.take(t, numbered(2))
	f.want(t) // a1 is parked
	b.take(t, numbered(2))
	f.refused = nil
	intent(t, f.store, "a", relay.Intent{Verb: relay.VerbRetry})
	b.Parking.Drain(t.Context(), "a")
	f.want(t, "a1", "a2")
}

// The key was drained by another owner. The next one tells the inbox so before the first event.
func TestOpenedKeyIsHandledAgain(t *testing.T) {
	f := newFenced("a1")
	f.owner(t, nil, nil).load(t).take(t, numbered(1))
	f.refused = nil
	intent(t, f.store, "a", relay.Intent{Verb: relay.VerbRetry})
	f.owner(t, nil, nil).Parking.Drain(t.Context(), "a")
	next := f.owner(t, nil, nil).load(t)
	for n := range int64(3) {
		if out := next.take(t, numbered(n+1)); out.Err != nil {
			t.Error(out.Err)
		}
	}
	f.want(t, "a1", "a2", "a3")
}

// Two keys have an event without an id and with the same body.
func TestParkedEventsWithoutAnIDAreNotThoseOfAnotherKey(t *testing.T) {
	f := newFenced()
	handled := 0
	refuse := true
	o := f.owner(t, nil, func(context.Context, *consumer.Event) error {
		if refuse {
			return consumer.DeadLetter("unknown", nil)
		}
		handled++
		return nil
	})
	for _, key := range []string{"a", "b"} {
		if err := o.Load(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		o.take(t, &consumer.Event{Key: key, Sequence: 1, Body: []byte(`{"type":"created"}`), DeliveryCount: 1})
	}
	refuse = false
	for _, key := range []string{"a", "b"} {
		intent(t, f.store, key, relay.Intent{Verb: relay.VerbRetry})
		o.Parking.Drain(t.Context(), key)
	}
	if handled != 2 {
		t.Errorf("%d events handled, want 2", handled)
	}
}
