package changefeed_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// eventLog collects events in order.
type eventLog struct {
	mu     sync.Mutex
	events []any
}

// note records an event, without the history in it, which is random.
func (d *eventLog) note(event any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := reflect.New(reflect.TypeOf(event)).Elem()
	e.Set(reflect.ValueOf(event))
	if e.Kind() == reflect.Struct && e.FieldByName("History").IsValid() {
		e.FieldByName("History").SetString("")
	}
	d.events = append(d.events, e.Interface())
}

// check fails unless the events are the wanted ones. Some values are ignored.
func (d *eventLog) check(t *testing.T, want ...any) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range max(len(d.events), len(want)) {
		switch {
		case i >= len(want):
			t.Errorf("event %d: %#v, want none", i, d.events[i])
		case i >= len(d.events):
			t.Errorf("event %d: none, want %#v", i, want[i])
		case !reflect.DeepEqual(d.events[i], want[i]):
			t.Errorf("event %d: %#v, want %#v", i, d.events[i], want[i])
		}
	}
}

// whole is the first ownership of the lease of all keys.
var whole = changefeed.LeaseRef{Lease: "changefeedmemory_db_coll..-FF", Range: changefeed.FullRange(), Epoch: 1}

// The report has the lease, the number of documents, the attempt, the duration and the
// cause. Items that are not done do not count as handled; the others count once.
func TestEachCallIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reported eventLog
		calls := 0
		w.put(4, 4)
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			calls++
			time.Sleep(time.Duration(calls) * time.Second)
			switch calls {
			case 1:
				return errNotNow
			case 3:
				for i := range b.Items {
					b.Answer(i, nil)
				}
				b.Answer(0, errNotNow)
			}
			return nil
		}), &changefeed.Options{Observer: &changefeed.Observer{
			BatchHandled: func(e changefeed.BatchHandled) { reported.note(e) },
			BatchFailed:  func(e changefeed.BatchFailed) { reported.note(e) },
		}})
		eventually(t, time.Minute, "handled", func() bool { return w.stored(4) })
		reported.check(t,
			changefeed.BatchFailed{LeaseRef: whole, Items: 4, Attempt: 1, Took: time.Second, Err: errNotNow},
			changefeed.BatchHandled{LeaseRef: whole, Items: 1, Attempt: 2, Took: 2 * time.Second},
			changefeed.BatchFailed{LeaseRef: whole, Items: 2, Attempt: 2, Took: 3 * time.Second, Err: errNotNow},
			changefeed.BatchHandled{LeaseRef: whole, Items: 1, Attempt: 2, Took: 4 * time.Second},
			changefeed.BatchHandled{LeaseRef: whole, Items: 1, Attempt: 3, Took: 5 * time.Second},
		)
		if l := w.leases()[0]; l.Handled != 4 || l.Delivered != 4 || l.LSN != 4 {
			t.Errorf("the lease has %d documents up to LSN %d, the checkpoint %d; want 4 and 4", l.Handled, l.Delivered, l.LSN)
		}
	})
}

// An event that is not accepted is not delivered, although the aggregate stored with it needs no
// delivery.
func TestTransactionIsDeliveredWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.feed.Put(memfeed.Document{Key: "k", ID: "first"})
		w.feed.Put(memfeed.Document{Key: "k", ID: "aggregate"}, memfeed.Document{Key: "k", ID: "event"})
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				b.Answer(i, nil)
				if strings.Contains(string(b.Items[i].Raw), `"event"`) {
					b.Answer(i, changefeed.WaitUntil(time.Time{}, errNotNow))
				}
			}
			return nil
		}), &changefeed.Options{})
		eventually(t, time.Minute, "handled", func() bool { l := w.leases(); return len(l) == 1 && l[0].Handled == 2 })
		if l := w.leases()[0]; l.Delivered != 1 {
			t.Errorf("delivered up to LSN %d; want 1, because a change of transaction 2 waits", l.Delivered)
		}
	})
}

// Both the sink and the observer receive every field.
func TestDeadLetterIsComplete(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var reported, kept eventLog
			refuse := changefeed.Refuse(errNotNow)
			failure := refuse
			if waits {
				failure = errNotNow
			}
			written := time.Now().Truncate(time.Second)
			w.feed.Put(memfeed.Document{Key: "k", ID: "bad"})
			raw := mustRaw(t, w, "bad")
			time.Sleep(time.Hour)
			w.traffic(time.Second)
			w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
				if idOf(&item) == "bad" {
					return failure
				}
				return nil
			}), &changefeed.Options{
				MaxAttempts: 3, WaitLimit: 3 * time.Second, RetryMin: time.Second, RetryMax: 2 * time.Second,
				Observer: &changefeed.Observer{DocumentPoisoned: func(e changefeed.DocumentPoisoned) { reported.note(e) }},
				DeadLetter: func(_ context.Context, l changefeed.DeadLetter) error {
					kept.note(l)
					return nil
				},
			})
			time.Sleep(time.Minute)
			kept.mu.Lock()
			attempts := 3
			if waits && len(kept.events) > 0 {
				attempts = kept.events[0].(changefeed.DeadLetter).Attempts // checked by TestDeadLetterOfWaitingDocumentHasAttempts
			}
			kept.mu.Unlock()
			want := changefeed.DeadLetter{
				LeaseRef: whole, ID: "bad", Key: []byte(`"k"`), LSN: 1, Changed: written, Attempts: attempts, Waiting: waits, Err: failure, Raw: raw,
			}
			kept.check(t, want)
			reported.check(t, changefeed.DocumentPoisoned{DeadLetter: want, Policy: changefeed.PoisonDeadLetter})
		})
	}
}

func TestPanicIsReportedWithValueAndStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reported eventLog
		panicked := false
		w.put(1, 1)
		w.start("a", changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error {
			if !panicked {
				panicked = true
				panic("what it says")
			}
			return nil
		}), &changefeed.Options{Observer: &changefeed.Observer{BatchFailed: func(e changefeed.BatchFailed) { reported.note(e.Err) }}})
		eventually(t, time.Minute, "handled", func() bool { return w.stored(1) })
		reported.mu.Lock()
		defer reported.mu.Unlock()
		err, _ := reported.events[0].(*changefeed.PanicError)
		if err == nil || err.Value != any("what it says") || !strings.Contains(string(err.Stack), "TestPanicIsReportedWithValueAndStack") {
			t.Errorf("reported %#v, want the panic, its value and its stack", reported.events[0])
		}
	})
}

func TestNegativeMaxAttemptsRetriesForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var tries atomic.Int32
		w.put(1, 1)
		w.start("a", changefeed.Each(func(context.Context, changefeed.Item) error {
			tries.Add(1)
			return changefeed.Refuse(errNotNow)
		}), &changefeed.Options{MaxAttempts: -1, RetryMax: time.Second})
		time.Sleep(time.Minute)
		if l := w.leases()[0]; tries.Load() < 40 || l.Health != changefeed.Retrying {
			t.Errorf("%d tries in a minute, health %q", tries.Load(), l.Health)
		}
	})
}

func TestErrorOfTypedHandlerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reported eventLog
		w.put(2, 2)
		w.start("a", changefeed.Typed(func(_ context.Context, b *changefeed.Batch, _ []struct{}) error {
			b.Answer(0, nil)
			return errNotNow
		}), &changefeed.Options{
			RetryMin: time.Hour, RetryMax: time.Hour,
			Observer: &changefeed.Observer{BatchFailed: func(e changefeed.BatchFailed) { reported.note(e) }},
		})
		time.Sleep(time.Minute)
		reported.check(t, changefeed.BatchFailed{LeaseRef: whole, Items: 2, Attempt: 1, Err: errNotNow})
		if l := w.leases()[0]; l.Error != errNotNow.Error() || l.Handled != 1 {
			t.Errorf("the lease has %q, %d documents handled; want the handler's error, and one", l.Error, l.Handled)
		}
	})
}

func TestErrorOfCallIsReportedAndAnswersKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reported eventLog
		w.put(2, 2)
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				var answer error
				if b.Attempt == 1 && i == 0 {
					answer = errCut
				}
				b.Answer(i, answer)
			}
			return errNotNow
		}), &changefeed.Options{Observer: &changefeed.Observer{
			BatchHandled: func(e changefeed.BatchHandled) { reported.note(e) },
			BatchFailed:  func(e changefeed.BatchFailed) { reported.note(e) },
		}})
		eventually(t, time.Minute, "handled", func() bool { return w.stored(2) })
		reported.check(t,
			changefeed.BatchFailed{LeaseRef: whole, Items: 2, Attempt: 1, Err: errNotNow},
			changefeed.BatchFailed{LeaseRef: whole, Items: 1, Attempt: 2, Err: errNotNow})
	})
}

// An operator's retry of a paused lease does not move it, so its lag stays known.
func TestRetryOfPausedLeaseKeepsTheLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error { return pause(ctx, 20*time.Second) }
		w.put(100, 100)
		a := w.start("a", nil, &changefeed.Options{MaxItems: 10, DrainTimeout: time.Minute})
		eventually(t, time.Minute, "begun", func() bool { return w.got.count() == 10 })
		if err := w.operator().PauseLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		before := a.Lag()[0]
		if err := w.operator().Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		after := a.Lag()[0]
		if !before.Known || before.Transactions < 50 || !after.Known || after.Transactions != before.Transactions || after.Request.Retry {
			t.Errorf("known %t, %d transactions, then %t, %d, %+v", before.Known, before.Transactions, after.Known, after.Transactions, after.Request)
		}
	})
}

// The test runs in a process of its own, whose end can be observed.
func TestPanicDoesNotEndTheProcess(t *testing.T) {
	const child = "CHANGEFEED_PANIC_CHILD"
	if os.Getenv(child) != "" {
		w := newWorld(t, 1)
		var calls atomic.Int32
		handled := make(chan struct{})
		w.put(1, 1)
		w.start("a", changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error {
			if calls.Add(1) == 1 {
				panic("cannot handle it")
			}
			close(handled)
			return nil
		}), nil)
		select {
		case <-handled:
		case <-time.After(2 * time.Minute):
			t.Error("not handled")
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		said, _, _ := strings.Cut(string(out), "\n") // of the panic, not its stack
		t.Errorf("the process ended with %v: %s", err, said)
	}
}

// The error shows what the handler was doing.
func TestTimeoutKeepsTheHandlersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reported atomic.Pointer[error]
		w.put(1, 1)
		w.start("a", changefeed.HandlerFunc(func(ctx context.Context, _ *changefeed.Batch) error {
			<-ctx.Done()
			return errNotNow
		}), &changefeed.Options{HandlerTimeout: time.Second, Observer: &changefeed.Observer{
			BatchFailed: func(e changefeed.BatchFailed) { reported.Store(&e.Err) },
		}})
		eventually(t, time.Minute, "a failure", func() bool { return reported.Load() != nil })
		if err := *reported.Load(); !errors.Is(err, changefeed.ErrHandlerTimeout) || !errors.Is(err, errNotNow) {
			t.Errorf("reported %v, want the time-out and the handler's error", err)
		}
	})
}
