package changefeed_test

import (
	"context"
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

// diary keeps events as they come.
type diary struct {
	mu     sync.Mutex
	events []any
}

func (d *diary) note(event any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, event)
}

// check fails unless the events are those wanted; some values are of no interest.
func (d *diary) check(t *testing.T, want ...any) {
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

// Each call of the handler is told: of what lease, how many documents, how often they
// are tried, how long it took and why it failed. Nothing of an item that is not done counts
// as handled, and what is done counts once.
func TestEachCallIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var told diary
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
			BatchHandled: func(e changefeed.BatchHandled) { told.note(e) },
			BatchFailed:  func(e changefeed.BatchFailed) { told.note(e) },
		}})
		eventually(t, time.Minute, "handled", func() bool { return w.stored(4) })
		told.check(t,
			changefeed.BatchFailed{LeaseRef: whole, Items: 4, Attempt: 1, Took: time.Second, Err: errNotNow},
			changefeed.BatchHandled{LeaseRef: whole, Items: 1, Attempt: 2, Took: 2 * time.Second},
			changefeed.BatchFailed{LeaseRef: whole, Items: 2, Attempt: 2, Took: 3 * time.Second, Err: errNotNow},
			changefeed.BatchHandled{LeaseRef: whole, Items: 1, Attempt: 2, Took: 4 * time.Second},
			changefeed.BatchHandled{LeaseRef: whole, Items: 1, Attempt: 3, Took: 5 * time.Second},
		)
		if l := w.leases()[0]; l.Handled != 4 || l.Delivered != 4 || l.LSN != 4 {
			t.Errorf("the lease tells %d documents up to LSN %d, the checkpoint %d; want 4 and 4", l.Handled, l.Delivered, l.LSN)
		}
	})
}

// What is set aside is told with everything that is known of it, to the sink and to the
// observer.
func TestALetterIsComplete(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var told, kept diary
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
				Observer: &changefeed.Observer{DocumentPoisoned: func(e changefeed.DocumentPoisoned) { told.note(e) }},
				DeadLetter: func(_ context.Context, l changefeed.DeadLetter) error {
					kept.note(l)
					return nil
				},
			})
			time.Sleep(time.Minute)
			kept.mu.Lock()
			attempts := 3
			if waits && len(kept.events) > 0 {
				attempts = kept.events[0].(changefeed.DeadLetter).Attempts // told by TestALetterTellsTheTries
			}
			kept.mu.Unlock()
			want := changefeed.DeadLetter{
				LeaseRef: whole, ID: "bad", Key: []byte(`"k"`), LSN: 1, Changed: written, Attempts: attempts, Waiting: waits, Err: failure, Raw: raw,
			}
			kept.check(t, want)
			told.check(t, changefeed.DocumentPoisoned{DeadLetter: want, Policy: changefeed.PoisonDeadLetter})
		})
	}
}

// A panic is told with its value and where it was.
func TestAPanicIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var told diary
		panicked := false
		w.put(1, 1)
		w.start("a", changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error {
			if !panicked {
				panicked = true
				panic("what it says")
			}
			return nil
		}), &changefeed.Options{Observer: &changefeed.Observer{BatchFailed: func(e changefeed.BatchFailed) { told.note(e.Err) }}})
		eventually(t, time.Minute, "handled", func() bool { return w.stored(1) })
		told.mu.Lock()
		defer told.mu.Unlock()
		err, _ := told.events[0].(*changefeed.PanicError)
		if err == nil || err.Value != any("what it says") || !strings.Contains(string(err.Stack), "TestAPanicIsTold") {
			t.Errorf("told %#v, want the panic, its value and its stack", told.events[0])
		}
	})
}

// Without a limit of attempts a document that is refused is tried for ever.
func TestRefusalsWithoutALimit(t *testing.T) {
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

// What a typed handler fails with is told, not that it has not answered.
func TestTheErrorOfATypedHandlerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var told diary
		w.put(2, 2)
		w.start("a", changefeed.Typed(func(_ context.Context, b *changefeed.Batch, _ []struct{}) error {
			b.Answer(0, nil)
			return errNotNow
		}), &changefeed.Options{
			RetryMin: time.Hour, RetryMax: time.Hour,
			Observer: &changefeed.Observer{BatchFailed: func(e changefeed.BatchFailed) { told.note(e) }},
		})
		time.Sleep(time.Minute)
		told.check(t, changefeed.BatchFailed{LeaseRef: whole, Items: 2, Attempt: 1, Err: errNotNow})
		if l := w.leases()[0]; l.Error != errNotNow.Error() || l.Handled != 1 {
			t.Errorf("the lease tells %q, %d documents handled; want what the handler said, and one", l.Error, l.Handled)
		}
	})
}

// What a call fails with is told, whatever it answered before; what it answered stands.
func TestTheErrorOfACallIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var told diary
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
			BatchHandled: func(e changefeed.BatchHandled) { told.note(e) },
			BatchFailed:  func(e changefeed.BatchFailed) { told.note(e) },
		}})
		eventually(t, time.Minute, "handled", func() bool { return w.stored(2) })
		told.check(t,
			changefeed.BatchFailed{LeaseRef: whole, Items: 2, Attempt: 1, Err: errNotNow},
			changefeed.BatchFailed{LeaseRef: whole, Items: 1, Attempt: 2, Err: errNotNow})
	})
}

// A retry that an operator asks for of a paused lease moves nothing: what waits stays known.
func TestARetryKeepsTheLag(t *testing.T) {
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
