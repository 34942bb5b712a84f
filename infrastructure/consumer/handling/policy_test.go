package handling_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay/parkedtest"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

var errBad = errors.New("bad customer number")

// calls returns the number of calls of the handler by event.
func (d *broker) calls() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls := map[string]int{}
	for _, id := range d.handled {
		calls[id]++
	}
	return calls
}

// Each action has its own attempts and treatment. The order of a parked key includes events whose action
// parks nothing itself.
func TestPolicyOfAnActionDecidesAboutItsFailures(t *testing.T) {
	store := parkedtest.NewMemory()
	run(t, consumer.Options{Park: store, Attempts: 4, Policies: map[string]consumer.Policy{
		"dropped":  {Attempts: 2, Refused: consumer.Drop},
		"dead":     {Attempts: -1, IsRefused: func(err error) bool { return errors.Is(err, errBad) }, Refused: consumer.DeadLetterOnly},
		"":         {Attempts: 3},
		"patience": {Attempts: -1, RetryDelay: time.Minute, RetryDelayMax: 2 * time.Minute},
	}}, func(_ context.Context, e *consumer.Event) error {
		switch {
		case e.Sequence > 1 || e.Action == "patience" && e.DeliveryCount == 12:
			return nil
		case e.Action == "dead" && e.DeliveryCount == 6:
			return fmt.Errorf("crm: %w", errBad)
		}
		return errors.New("not now")
	}, func(d *broker) {
		for _, action := range []string{"dropped", "dead", "other", "patience"} {
			d.action = action
			d.deliver(action, 1, 2)
		}
		d.action = "dropped"
		d.deliver("other", 3)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		d.mu.Lock()
		letters := fmt.Sprint(d.deadLetters)
		d.mu.Unlock()
		if got := fmt.Sprint(letters, parkedIDs(store, "dropped"), parkedIDs(store, "dead"), parkedIDs(store, "other")); got != "[dead1 refused][] [] [other1 other2 other3]" {
			t.Errorf("dead letters and parked events %s", got)
		}
		if n := d.calls()["patience1"]; n > 8 || n < 5 {
			t.Errorf("%d attempts in 10 minutes with a pause of 1 to 2 minutes", n)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if got := fmt.Sprint(d.calls()); got != "map[dead1:6 dead2:1 dropped1:2 dropped2:1 other1:3 patience1:12 patience2:1]" {
			t.Errorf("calls %s", got)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		dropped := 0
		for _, o := range d.outcomes {
			if o == "dropped1 dropped" {
				dropped++
			}
		}
		if dropped != 1 {
			t.Errorf("outcomes %v", d.outcomes)
		}
	})
}

// Nothing but the log names an event that a policy drops, so a repeated reason hides none of them.
func TestEachDroppedEventIsLogged(t *testing.T) {
	var log bytes.Buffer
	run(t, consumer.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Policies: map[string]consumer.Policy{"": {Refused: consumer.Drop}}}, func(context.Context, *consumer.Event) error {
		return consumer.DeadLetter("unknown_schema", nil)
	}, func(d *broker) {
		d.deliver("a", 1, 2, 3)
		d.want(t, "outcomes", &d.outcomes, time.Second, "a1 dropped", "a2 dropped", "a3 dropped")
	})
	for _, id := range []string{"a1", "a2", "a3"} {
		if !strings.Contains(log.String(), "event.id="+id+" ") {
			t.Errorf("event %s was dropped without a log line:\n%s", id, &log)
		}
	}
}

func TestTimeoutOfAPolicyEndsTheHandler(t *testing.T) {
	run(t, consumer.Options{Policies: map[string]consumer.Policy{"": {Timeout: 5 * time.Second, Attempts: 2}}}, func(ctx context.Context, e *consumer.Event) error {
		if e.Sequence > 1 {
			return nil
		}
		began := time.Now()
		<-ctx.Done()
		if took := time.Since(began); took != 5*time.Second || !errors.Is(context.Cause(ctx), consumer.ErrTimeout) {
			t.Errorf("ended after %v by %v", took, context.Cause(ctx))
		}
		return ctx.Err()
	}, func(d *broker) {
		d.deliver("a", 1, 2)
		d.want(t, "dead letters", &d.deadLetters, time.Minute, "a1 too_many_attempts")
		d.want(t, "handled", &d.handled, 0, "a1", "a1", "a2")
	})
}

// While the dependency is unavailable, one event at a time is tried, no attempt is spent, and actions without
// it are handled. Then all are, in the order of their keys.
func TestUnavailableDependencyIsTriedWithOneEvent(t *testing.T) {
	const keys = 50
	const outage = 10 * time.Minute
	var began time.Time
	var calls, running, most atomic.Int64
	run(t, consumer.Options{Attempts: 2, Policies: map[string]consumer.Policy{
		"crm": {Dependency: "crm", IsUnavailable: func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }, Timeout: 2 * time.Second},
		// No policy refuses an event for what its handler calls an outage.
		"crm2": {Dependency: "crm", RetryDelayMax: 20 * time.Second, IsRefused: func(error) bool { return true }},
	}}, func(ctx context.Context, e *consumer.Event) error {
		since := time.Since(began)
		if e.Action == "none" || since > outage {
			return nil
		}
		defer running.Add(-1)
		if n := running.Add(1); since > 10*time.Second {
			most.Store(max(most.Load(), n))
			calls.Add(1)
		}
		if e.Action == "crm" {
			<-ctx.Done()
			return ctx.Err()
		}
		return consumer.Unavailable(errors.New("crm: 503"))
	}, func(d *broker) {
		began = time.Now()
		for k := range keys {
			d.action = []string{"crm", "crm2"}[k%2]
			d.deliver(fmt.Sprint("k", k, "."), 1, 2)
		}
		time.Sleep(time.Minute)
		d.action = "none"
		d.deliver("n", 1, 2, 3)
		time.Sleep(time.Second)
		d.mu.Lock()
		var others []string
		for _, o := range d.outcomes {
			if o[0] == 'n' {
				others = append(others, o)
			}
		}
		d.mu.Unlock()
		if got := fmt.Sprint(others); got != "[n1 handled n2 handled n3 handled]" {
			t.Errorf("outcomes of the action without the dependency %s", got)
		}
		time.Sleep(outage)
		// Without the breaker these would be 100 events with a pause of at most 36 s, 1,600 calls at least.
		if n := calls.Load(); most.Load() != 1 || n > 60 || n < 12 {
			t.Errorf("%d calls in the outage, %d at a time", n, most.Load())
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		last := map[string]string{}
		done := 0
		for _, o := range d.outcomes {
			var id, action string
			_, _ = fmt.Sscan(o, &id, &action)
			if action != "handled" || id[0] != 'k' {
				continue
			}
			done++
			if key := id[:len(id)-1]; id[len(id)-1:] != map[string]string{"": "1", "1": "2"}[last[key]] {
				t.Errorf("%s handled after %q", id, last[key])
			} else {
				last[key] = id[len(id)-1:]
			}
		}
		if done != 2*keys || len(d.deadLetters) != 0 {
			t.Errorf("%d events handled, dead letters %v", done, d.deadLetters)
		}
	})
}

// A probe that ends with the lock of its event says nothing; the next event is tried.
func TestInterruptedProbeIsRepeated(t *testing.T) {
	calls := 0
	run(t, consumer.Options{Policies: map[string]consumer.Policy{"": {Dependency: "crm"}}}, func(ctx context.Context, _ *consumer.Event) error {
		switch calls++; calls {
		case 1:
			return consumer.Unavailable(errors.New("503"))
		case 2:
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}, func(d *broker) {
		d.deliver("a", 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		d.loseLocks(consumer.ErrLockLost)
		d.locked = d.ctx
		d.deliver("b", 1)
		time.Sleep(time.Minute)
		d.want(t, "handled", &d.handled, 0, "a1", "a1", "b1")
	})
}

// A probe that ends before the handler, because the inbox cannot count the delivery, says nothing either.
func TestProbeWithoutACallIsRepeated(t *testing.T) {
	box := &failing{Inbox: consumer.NewMemoryInbox(0), fails: "Record"}
	calls := 0
	run(t, consumer.Options{Inbox: box, Policies: map[string]consumer.Policy{"": {Dependency: "crm"}}}, func(context.Context, *consumer.Event) error {
		if calls++; calls == 1 {
			return consumer.Unavailable(errors.New("503"))
		}
		return nil
	}, func(d *broker) {
		d.dispatcher.LimitDeliveries(3)
		d.deliver("a", 1)
		synctest.Wait()
		d.loseLocks(consumer.ErrLockLost)
		synctest.Wait()
		box.until = time.Now().Add(time.Minute)
		d.locked, d.deliveries = d.ctx, 50
		d.deliver("b", 1)
		d.want(t, "handled", &d.handled, 10*time.Minute, "a1", "b1")
	})
}

// Neither the policy's functions nor the observer end the consumer by a panic. The event is retried, and a probe
// ends.
func TestPanickingPolicyIsAFailureOfTheEvent(t *testing.T) {
	var mu sync.Mutex
	var failures []error
	run(t, consumer.Options{Attempts: 3, Observe: func(_ context.Context, o consumer.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		failures = append(failures, o.Err)
		panic("no dashboard")
	}, Policies: map[string]consumer.Policy{
		"refuses": {IsRefused: func(error) bool { panic("no list") }},
		"": {Dependency: "crm", IsUnavailable: func(err error) bool {
			if errors.Is(err, errBad) {
				panic("no status")
			}
			return true
		}},
	}}, func(_ context.Context, e *consumer.Event) error {
		switch {
		case e.Action == "refuses" && e.Sequence == 1, e.ID == "b1" && e.DeliveryCount == 2:
			return fmt.Errorf("crm: %w", errBad)
		case e.ID == "b1" && e.DeliveryCount == 1:
			return errors.New("503")
		}
		return nil
	}, func(d *broker) {
		d.action = "refuses"
		d.deliver("a", 1, 2)
		d.action = "other"
		d.deliver("b", 1, 2)
		d.want(t, "dead letters", &d.deadLetters, time.Minute, "a1 too_many_attempts")
		if got := fmt.Sprint(d.calls()); got != "map[a1:3 a2:1 b1:3 b2:1]" {
			t.Errorf("calls %s", got)
		}
		mu.Lock()
		defer mu.Unlock()
		if !strings.Contains(fmt.Sprint(failures), "panic: no list (classifying crm: bad customer number)") {
			t.Errorf("failures %v", failures)
		}
	})
}

func TestInvalidPoliciesAreReported(t *testing.T) {
	for _, p := range []consumer.Policy{{Timeout: -1}, {RetryDelay: -1}, {RetryDelayMax: -1}, {Refused: 3}} {
		_, err := handling.NewDispatcher(handling.Source{}, nil, func(context.Context, *consumer.Event) error { return nil }, consumer.Options{Policies: map[string]consumer.Policy{"ContactCreated": p}})
		if err == nil || !strings.Contains(err.Error(), `policy of "ContactCreated"`) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// Pauses double up to the longest one, with a jitter of 20 %. A policy replaces either time.
func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	r := handling.Runner{RetryDelay: time.Second, RetryDelayMax: 10 * time.Second, Policies: map[string]consumer.Policy{
		"first": {RetryDelay: 3 * time.Second}, "limit": {RetryDelayMax: 5 * time.Second}, "both": {RetryDelay: time.Minute, RetryDelayMax: 2 * time.Minute}, "above": {RetryDelay: time.Minute},
	}}
	for action, seconds := range map[string][]int{
		"": {1, 1, 2, 4, 8, 10, 10}, "first": {3, 3, 6, 10, 10}, "limit": {1, 1, 2, 4, 5, 5}, "both": {60, 60, 120, 120}, "above": {60, 60, 60},
	} {
		for n, s := range seconds {
			shortest, longest := time.Hour, time.Duration(0)
			for range 1000 {
				d := r.BackoffOf(&consumer.Event{Action: action}, n)
				shortest, longest = min(shortest, d), max(longest, d)
			}
			middle := time.Duration(s) * time.Second
			if shortest < middle*8/10 || longest > middle*12/10 || longest-shortest < middle*3/10 {
				t.Errorf("action %q, failure %d: pauses of %s to %s, want those around %s", action, n, shortest, longest, middle)
			}
		}
	}
}
