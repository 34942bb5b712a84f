package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// pickyHandler records deliveries and fails for some documents.
type pickyHandler struct {
	*deliveries
	bad    func(raw string) bool
	blames bool // it refuses them by name; else the whole call fails
	panics bool

	mu    sync.Mutex
	tried map[string]int
}

func newPickyHandler(bad func(raw string) bool) *pickyHandler {
	return &pickyHandler{deliveries: newDeliveries(), bad: bad, blames: true, tried: map[string]int{}}
}

func (f *pickyHandler) Handle(ctx context.Context, b *changefeed.Batch) error {
	blocked := map[string]bool{}
	good := *b
	good.Items = nil
	var refused, handled []int
	for i := range b.Items {
		if f.bad(string(b.Items[i].Raw)) {
			f.mu.Lock()
			f.tried[string(b.Items[i].Raw)]++
			f.mu.Unlock()
			if f.panics {
				panic("cannot handle it")
			}
			if !f.blames {
				return errors.New("cannot handle something")
			}
			blocked[string(b.Items[i].Key)] = true
			refused = append(refused, i)
			continue
		}
		if !blocked[string(b.Items[i].Key)] {
			good.Items = append(good.Items, b.Items[i])
			handled = append(handled, i)
		}
	}
	if err := f.deliveries.Handle(ctx, &good); err != nil {
		return err
	}
	if len(refused) == 0 {
		return nil
	}
	for _, i := range handled {
		b.Answer(i, nil)
	}
	for _, i := range refused {
		b.Answer(i, changefeed.Refuse(errors.New("cannot handle this")))
	}
	return nil
}

// deadLetters collects dead letters.
type deadLetters struct {
	mu      sync.Mutex
	letters []changefeed.DeadLetter
	fail    atomic.Int32 // so many calls fail first
}

func (g *deadLetters) store(_ context.Context, l changefeed.DeadLetter) error {
	if g.fail.Add(-1) >= 0 {
		return errors.New("the sink is down")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.letters = append(g.letters, l)
	return nil
}

func (g *deadLetters) holds(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.letters, func(l changefeed.DeadLetter) bool { return l.ID == id })
}

func (g *deadLetters) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.letters)
}

func hasID(id string) func(string) bool {
	return func(raw string) bool { return strings.Contains(raw, fmt.Sprintf("%q", id)) }
}

// A refused document is dead-lettered after its attempts; one whose calls only fail, after
// it has waited too long while others were handled. Only its key waits, and nothing else is
// lost.
func TestPoisonDocumentIsDeadLettered(t *testing.T) {
	for _, kind := range []string{"refused", "fails", "panics"} {
		for _, lanes := range []int{1, 8} {
			t.Run(fmt.Sprintf("%s/lanes=%d", kind, lanes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 1)
					h := newPickyHandler(hasID("doc-57"))
					h.blames, h.panics = kind == "refused", kind == "panics"
					var g deadLetters
					g.fail.Store(2)
					var poisoned atomic.Int32
					w.put(100, 10)
					w.start("a", h, &changefeed.Options{
						Lanes: lanes, MaxItems: 30, DeadLetter: g.store, WaitLimit: time.Minute,
						Observer: &changefeed.Observer{DocumentPoisoned: func(changefeed.DocumentPoisoned) { poisoned.Add(1) }},
					})
					eventually(t, 40*time.Second, "other keys are delivered", func() bool {
						h.deliveries.mu.Lock()
						defer h.deliveries.mu.Unlock()
						n := 0
						for key, lsns := range h.byKey {
							if key != `"key-6"` {
								n += len(lsns)
							}
						}
						return n >= 90
					})
					for range 20 { // other documents show that the handler works
						time.Sleep(10 * time.Second)
						w.feed.Put(memfeed.Document{Key: "other", ID: fmt.Sprintf("late-%d", w.docs.Add(1))})
					}
					eventually(t, 3*time.Minute, "all delivered", func() bool { return h.distinct() == 119 })
					h.ordered(t)
					if g.count() != 1 || poisoned.Load() != 1 {
						t.Fatalf("%d dead letters, %d events; want 1", g.count(), poisoned.Load())
					}
					l := g.letters[0]
					if l.ID != "doc-57" || l.LSN != 57 || string(l.Key) != `"key-6"` || l.Err == nil || !hasID("doc-57")(string(l.Raw)) || l.Epoch != 1 {
						t.Errorf("letter %+v", l)
					}
					if l.Waiting != (kind != "refused") || !l.Waiting && l.Attempts != 5 {
						t.Errorf("letter after %d attempts, waiting %t", l.Attempts, l.Waiting)
					}
					time.Sleep(10 * time.Second)
					if l := w.leases()[0]; l.Health != changefeed.Healthy || l.Continuation != `"120"` || len(l.Ahead.Held) != 0 {
						t.Errorf("lease afterwards: health %q, continuation %s, held %v", l.Health, l.Continuation, l.Ahead.Held)
					}
				})
			})
		}
	}
}

// Attempts are kept in the lease across restarts and hand-offs. A document without attempts
// left that could not be dead-lettered is tried once more by each new owner, which thereby
// learns the cause.
func TestAttemptsSurviveRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := newPickyHandler(hasID("doc-5"))
		var g deadLetters
		g.fail.Store(1 << 30)
		w.put(20, 4)
		o := &changefeed.Options{DeadLetter: g.store, RetryMin: 2 * time.Second, RetryMax: 2 * time.Second, MaxAttempts: 6}
		tries := func() int {
			h.mu.Lock()
			defer h.mu.Unlock()
			n := 0
			for _, c := range h.tried {
				n += c
			}
			return n
		}
		for i := range 3 {
			a := w.start(fmt.Sprintf("a%d", i), h, o)
			time.Sleep(5 * time.Second)
			a.stop()
		}
		if n := tries(); n < 4 || n > 8 {
			t.Errorf("%d attempts by three hosts", n)
		}
		b := w.start("b", h, o)
		time.Sleep(30 * time.Second)
		if n := tries(); n > 9 {
			t.Errorf("%d attempts in all, want 6 and one more of each new owner", n)
		}
		b.stop()
		g.fail.Store(0)
		before := tries()
		w.start("c", h, o)
		eventually(t, 10*time.Second, "buried", func() bool { return g.count() == 1 })
		if n := tries() - before; n != 1 || !strings.Contains(g.letters[0].Err.Error(), "cannot handle this") {
			t.Errorf("%d attempts by the last owner, letter for %v", n, g.letters[0].Err)
		}
		eventually(t, 10*time.Second, "delivered", func() bool { return h.distinct() == 19 })
	})
}

func TestPolicyStopHoldsTheRangeUntilRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var fixed atomic.Bool
		bad := hasID("doc-11")
		h := newPickyHandler(func(raw string) bool { return !fixed.Load() && bad(raw) })
		w.put(200, 40)
		o := &changefeed.Options{Lanes: 4, MaxAttempts: 3, MaxItems: 20}
		a := w.start("a", h, o)
		stopped := func() *changefeed.Lease {
			for _, l := range w.leases() {
				if l.Health == changefeed.Stopped {
					return &l
				}
			}
			return nil
		}
		eventually(t, time.Minute, "stopped", func() bool { return stopped() != nil })
		time.Sleep(time.Minute)
		l := stopped()
		if l == nil || l.Owner != "a" || !strings.Contains(l.Error, "cannot handle this") {
			t.Fatalf("the stopped lease: %+v", l)
		}
		a.stop()
		b := w.start("b", h, o) // it stays stopped with another owner
		eventually(t, time.Minute, "stopped again", func() bool { return stopped() != nil })
		time.Sleep(10 * time.Second)
		if n := h.tried[string(mustRaw(t, w, "doc-11"))]; n != 4 {
			t.Errorf("%d attempts, want 3 and one of the new owner", n)
		}
		fixed.Store(true)
		if err := w.operator().Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "all delivered", func() bool { return h.distinct() == 200 })
		h.ordered(t)
		b.stop()
	})
}

// mustRaw reads one document from the feed.
func mustRaw(t *testing.T, w *world, id string) []byte {
	t.Helper()
	ranges, err := w.feed.Ranges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range ranges {
		page, err := w.feed.Read(t.Context(), changefeed.ReadRequest{Range: r})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range page.Items {
			if hasID(id)(string(i.Raw)) {
				return i.Raw
			}
		}
	}
	t.Fatalf("no document %s", id)
	return nil
}

// An operator resets the attempts of a lease while it splits.
func TestRetryReachesTheChildrenOfASplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
		var tried atomic.Int32
		h := changefeed.Each(func(ctx context.Context, item changefeed.Item) error {
			switch id := idOf(&item); id {
			case "bad":
				tried.Add(1)
				return changefeed.Refuse(errors.New("bad"))
			case "slow":
				return pause(ctx, 5*time.Second)
			}
			return nil
		})
		w.start("a", h, &changefeed.Options{
			DeadLetter: g.store, MaxAttempts: 4, RetryMin: 20 * time.Minute, RetryMax: 20 * time.Minute, PollMax: time.Second, Expiry: time.Hour,
		})
		w.feed.Put(memfeed.Document{Key: "k", ID: "bad"})
		eventually(t, 2*time.Hour, "three attempts", func() bool { return tried.Load() == 3 })
		w.feed.Put(memfeed.Document{Key: "j", ID: "slow"})
		time.Sleep(2 * time.Second)
		w.feed.Split("20") // noticed at once; the page in hand is finished first
		time.Sleep(2 * time.Second)
		if err := w.operator().Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "another attempt after the split", func() bool { return w.owners()["a"] == 2 && tried.Load() > 3 })
		time.Sleep(time.Minute)
		if n := g.count(); n > 0 {
			t.Errorf("%d dead letters after %d attempts, three of them before the operator's Retry", n, tried.Load())
		}
	})
}

func TestPolicySkipContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := newPickyHandler(hasID("doc-3"))
		w.put(50, 5)
		w.start("a", h, &changefeed.Options{Poison: changefeed.PoisonSkip})
		eventually(t, 2*time.Minute, "all others delivered", func() bool { return h.distinct() == 49 })
		h.ordered(t)
	})
}

func TestTypedHandlerNamesWhatItCannotDecode(t *testing.T) {
	type doc struct {
		ID string `json:"id"`
		N  int    `json:"n"`
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
		var mu sync.Mutex
		var got []string
		for i := range 20 {
			var n any = i
			if i == 7 {
				n = "seven"
			}
			w.feed.Put(memfeed.Document{Key: fmt.Sprint(i % 4), ID: fmt.Sprint(i), More: map[string]any{"n": n}})
		}
		w.start("a", changefeed.Typed(func(_ context.Context, b *changefeed.Batch, docs []doc) error {
			mu.Lock()
			defer mu.Unlock()
			if len(docs) != len(b.Items) {
				t.Errorf("%d documents, %d items", len(docs), len(b.Items))
			}
			for _, d := range docs {
				got = append(got, d.ID)
			}
			return nil
		}), &changefeed.Options{DeadLetter: g.store})
		eventually(t, time.Minute, "delivered", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == 19 })
		if g.count() != 1 || g.letters[0].ID != "7" {
			t.Errorf("dead letters %+v", g.letters)
		}
	})
}

func TestHandlerTimeoutIsRetriedByTheSameHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var calls atomic.Int32
		causes := make(chan error, 10)
		w.put(10, 10)
		w.got.before = func(ctx context.Context, b *changefeed.Batch) error {
			if n := calls.Add(1); n <= 2 {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return ctx.Err()
			}
			if b.Attempt < 2 || b.Attempt > 3 {
				t.Errorf("attempt %d, want 2 or 3", b.Attempt)
			}
			return nil
		}
		var moved atomic.Int32
		w.start("a", nil, &changefeed.Options{HandlerTimeout: time.Minute, Observer: &changefeed.Observer{
			LeaseReleased: func(changefeed.LeaseReleased) { moved.Add(1) }, LeaseLost: func(changefeed.LeaseLost) { moved.Add(1) },
		}})
		eventually(t, 10*time.Minute, "delivered", func() bool { return w.got.count() == 10 })
		if err := <-causes; !errors.Is(err, changefeed.ErrHandlerTimeout) {
			t.Errorf("cause %v", err)
		}
		if moved.Load() != 0 {
			t.Error("a failing handler cost the lease")
		}
	})
}

// Documents that can be neither handled nor dead-lettered stop only their own keys, also if each attempt takes long,
// or if many take a while.
func TestSilentDeadLettersDelayNoOtherHeldKey(t *testing.T) {
	for name, c := range map[string]struct {
		letters    int
		took, most time.Duration
		err        error
	}{
		"silent":             {20, 30 * time.Second, 55 * time.Second, errors.New("no answer")},
		"many that fail":     {300, 900 * time.Millisecond, 30 * time.Second, errors.New("busy")},
		"many that are kept": {300, 900 * time.Millisecond, 30 * time.Second, nil},
		"fast":               {300, time.Millisecond, 20 * time.Second, errors.New("busy")},
	} {
		t.Run(name, func(t *testing.T) { silentDeadLetters(t, c.letters, c.took, c.most, c.err) })
	}
}

// silentDeadLetters keeps a key waiting for a minute, which then needs three attempts, beside letters that take a time each.
func silentDeadLetters(t *testing.T, letters int, takes, most time.Duration, err error) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var well atomic.Bool
		attempts := 0
		handled := make(chan time.Time, 1)
		handler := changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			switch {
			case strings.Contains(string(item.Raw), "bad"):
				return changefeed.Refuse(errors.New("bad"))
			case !well.Load(), attempts < 2:
				if well.Load() {
					attempts++
				}
				return errors.New("waits")
			}
			handled <- time.Now()
			return nil
		})
		slow := func(ctx context.Context, _ changefeed.DeadLetter) error {
			_ = pause(ctx, takes)
			return err
		}
		w.start("a", handler, &changefeed.Options{MaxAttempts: 1, DeadLetter: slow, RetryMax: 5 * time.Second})
		w.feed.Put(memfeed.Document{Key: "other", ID: "waits"})
		for i := range letters {
			w.feed.Put(memfeed.Document{Key: fmt.Sprint("bad", i), ID: fmt.Sprint("bad", i)})
		}
		time.Sleep(time.Minute)
		well.Store(true)
		began := time.Now()
		if took := (<-handled).Sub(began); took > most {
			t.Errorf("the other key waited for %s after its trouble had ended", took)
		}
	})
}

// The parked container has several physical partitions, and only that of one key may not answer.
func TestDeadLettersOfOneKeyDelayNoOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var others atomic.Int64
		letters := func(ctx context.Context, l changefeed.DeadLetter) error {
			if l.ID != "bad-00" && l.ID != "bad-01" {
				others.Add(1)
				return nil
			}
			_ = pause(ctx, 30*time.Second)
			return errors.New("no answer")
		}
		refuse := changefeed.Each(func(context.Context, changefeed.Item) error { return changefeed.Refuse(errors.New("bad")) })
		w.start("a", refuse, &changefeed.Options{MaxAttempts: 1, DeadLetter: letters, RetryMax: 5 * time.Second})
		for i := range 20 {
			w.feed.Put(memfeed.Document{Key: fmt.Sprintf("bad-%02d", i), ID: fmt.Sprintf("bad-%02d", i)})
		}
		time.Sleep(4 * time.Minute)
		if n := others.Load(); n != 18 {
			t.Errorf("%d of 18 other keys in 4 minutes", n)
		}
	})
}
