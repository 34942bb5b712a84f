package relay_test

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

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/domain/fault"
)

// owner owns every range, or none while it is away.
type owner struct {
	away  atomic.Bool
	steps atomic.Int32
}

func (o *owner) Own(ctx context.Context, _ string, do func(context.Context) error) error {
	if o.steps.Add(1) > 10_000 {
		return errors.New("a drain has no end")
	}
	if o.away.Load() {
		return relay.ErrNotOwned
	}
	return do(ctx)
}

func newDrainer(t *testing.T, lot relay.DrainStore, p relay.Publisher, opts relay.DrainOptions, drained *told) *relay.Drainer {
	t.Helper()
	return newDrainerOf(t, lot, &owner{}, p, opts, drained)
}

func newDrainerOf(t *testing.T, lot relay.DrainStore, ranges relay.Ranges, p relay.Publisher, opts relay.DrainOptions, drained *told) *relay.Drainer {
	t.Helper()
	opts.Now, opts.Batch = time.Now, 3
	opts.Drained = func(_ context.Context, d relay.Drained) {
		if drained != nil {
			drained.add(fmt.Sprintf("%s sent %d differ %d skip %v open %v %s", d.Key, d.Sent, d.Differ, d.Skip, d.Open, relay.ReasonOf(d.Err)))
		}
	}
	d, err := relay.NewDrainer(lot, ranges, lineDecoder{}, p, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// told is what a drainer has told.
type told struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (l *told) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *told) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// run runs d until the test is over.
func run(t *testing.T, d *relay.Drainer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func parkAll(t *testing.T, r *relay.Relay, key string, n int) {
	t.Helper()
	if err := r.Park(t.Context(), letter(key+" "+key+"1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	for i := 2; i <= n; i++ {
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("%s %s%d %d", key, key, i, i))); failed != nil {
			t.Fatal(failed)
		}
	}
}

func gateOf(t *testing.T, lot *parkedtest.Memory, key string) relay.Gate {
	t.Helper()
	g, err := lot.Gate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func intend(t *testing.T, lot *parkedtest.Memory, key string, i relay.Intent) {
	t.Helper()
	if _, err := lot.SetIntent(t.Context(), key, i); err != nil {
		t.Fatal(err)
	}
}

func TestARetryDrainsInOrderWhileNewEventsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 8)
		drained := &told{}
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, drained))
		settle(time.Minute)
		if b.sent != 0 {
			t.Fatal("drained without an intent")
		}
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, By: "ann"})
		var want []string
		for n := 1; n <= 8; n++ {
			want = append(want, fmt.Sprintf("a%d", n))
		}
		for n := 9; n <= 200; n++ {
			if failed := r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("a a%d %d", n, n))); failed != nil {
				t.Fatal(failed)
			}
			want = append(want, fmt.Sprintf("a%d", n))
			time.Sleep(50 * time.Millisecond)
		}
		if diff := cmp.Diff(want, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		if _, err := lot.Gate(t.Context(), "a"); err == nil || len(drained.all()) != 1 {
			t.Errorf("gate %v, drained %v; want it open after one try", err, drained.all())
		}
	})
}

func TestADrainStopsAtWhatIsStillRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 2)
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a3 ?", "a a4 4")); failed != nil {
			t.Fatal(failed)
		}
		drained := &told{}
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, drained))
		closing := gateOf(t, lot, "a").Closing
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(10 * time.Second)
		if diff := cmp.Diff([]string{"a3 invalid_event", "a4 held"}, line(t, lot, "a")); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
		g := gateOf(t, lot, "a")
		if g.Intent != nil || g.Attempts != 1 || g.Error == "" || g.Closing != closing {
			t.Errorf("gate %+v, want it closed as it was, without intent, with the error", g)
		}

		lot.Mend("a", "a3", []byte("a a3 3"))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(10 * time.Second)
		if diff := cmp.Diff([]string{"a1", "a2", "a3", "a4"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		want := []string{"a sent 2 differ 0 skip false open false invalid_event", "a sent 2 differ 0 skip false open true unknown"}
		if diff := cmp.Diff(want, drained.all()); diff != "" {
			t.Errorf("drained (-want +got):\n%s", diff)
		}
	})
}

func TestASkipLeavesARecordAndSendsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 3)
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, nil))

		intend(t, lot, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a2"})
		settle(10 * time.Second)
		if g, err := lot.Gate(t.Context(), "a"); err != nil || g.Intent != nil || b.sent != 0 {
			t.Errorf("gate %+v, %v; want an event that is not the first to stay", g, err)
		}
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a1", By: "ann", Note: "test data"})
		settle(10 * time.Second)
		if diff := cmp.Diff([]string{"a2", "a3"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		skipped, _ := lot.Skipped(t.Context(), "a")
		if len(skipped) != 1 || skipped[0].Event.ID != "a1" || skipped[0].Intent.By != "ann" || skipped[0].Intent.Note != "test data" {
			t.Errorf("records %+v, want a1 by ann", skipped)
		}
	})
}

func TestADrainWaitsOutAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 5)
		b.fail = map[string]relay.KeyError{"a": {Sent: 1, Err: errBusy}}
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, nil))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		time.Sleep(4 * time.Second)
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		settle(time.Minute)
		if diff := cmp.Diff([]string{"a1", "a2", "a3", "a4", "a5"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

// settle lets time pass and all goroutines of the bubble come to rest.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

type publisherCtx func(ctx context.Context, groups []relay.Group) error

func (f publisherCtx) Publish(ctx context.Context, groups []relay.Group) error { return f(ctx, groups) }

// TestAKeyIsDrainedByTheOwnerOfItsRange moves the range while a step is under way: what
// runs under the lease ends with it, and another process goes on.
func TestAKeyIsDrainedByTheOwnerOfItsRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 20)
		here, there := &lease{}, &lease{}
		here.gain()
		var hangs atomic.Bool
		hangs.Store(true)
		slow := publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			if !hangs.Load() {
				return b.Publish(ctx, groups)
			}
			<-ctx.Done()
			return &relay.PublishError{Keys: []relay.KeyError{{Err: ctx.Err()}}}
		})
		mine, other := &told{}, &told{}
		run(t, newDrainerOf(t, lot, here, slow, relay.DrainOptions{}, mine))
		run(t, newDrainerOf(t, lot, there, b, relay.DrainOptions{}, other))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(time.Minute)
		if b.sent != 0 || len(other.all()) != 0 {
			t.Fatalf("%d events sent, told %v, by a process that does not own the range", b.sent, other.all())
		}
		here.lose()
		hangs.Store(false)
		settle(time.Minute)
		if b.sent != 0 || len(mine.all()) != 1 || len(other.all()) != 0 {
			t.Fatalf("%d events sent, told %v and %v; want the send ended with the lease, and nothing without one", b.sent, mine.all(), other.all())
		}
		there.gain()
		settle(time.Minute)
		var want []string
		for n := 1; n <= 20; n++ {
			want = append(want, fmt.Sprintf("a%d", n))
		}
		if diff := cmp.Diff(want, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

// lease is the ownership of all ranges by a process, which comes and goes.
type lease struct {
	mu     sync.Mutex // guards what follows
	owned  bool
	cancel context.CancelFunc // of what runs under it; nil = nothing has
}

func (l *lease) gain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owned = true
}

func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owned = false
	l.cancel()
}

func (l *lease) Own(ctx context.Context, _ string, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	owned := l.owned
	l.cancel = cancel
	l.mu.Unlock()
	if !owned {
		return relay.ErrNotOwned
	}
	return do(ctx)
}

// A change of the gate while events are sent takes none of them back: they are removed
// from the gate as it is then.
func TestWhatWasSentIsRemovedThoughTheGateChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 3)
		newer := relay.Intent{Verb: relay.VerbRetry, By: "bob"}
		busy := publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			if len(b.got["a"]) == 0 {
				intend(t, lot, "a", newer)
				if failed := r.Handle(ctx, relay.Ownership{}, changes("a a4 4@9")); failed != nil {
					t.Error(failed)
				}
			}
			return b.Publish(ctx, groups)
		})
		run(t, newDrainer(t, lot, busy, relay.DrainOptions{}, nil))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, By: "ann"})
		settle(time.Minute)
		if diff := cmp.Diff([]string{"a1", "a2", "a3", "a4"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

// waitingLetter is an event that waited too long.
func waitingLetter(line string, lsn int64) relay.DeadLetter {
	l := letter(line, lsn, errBusy)
	l.Waiting = true
	return l
}

// TestAKeyThatWaitedIsDrainedByItself keeps the broker away for a day: the key stays
// wanted, is tried at most once a minute, and flows when the broker is back.
func TestAKeyThatWaitedIsDrainedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		b.fail = map[string]relay.KeyError{"a": {Err: errBusy}}
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		if err := r.Park(t.Context(), waitingLetter("a a1 1", 1)); err != nil {
			t.Fatal(err)
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@2", "a a3 3@3")); failed != nil {
			t.Fatal(failed)
		}
		drained, before := &told{}, gateOf(t, lot, "a")
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, drained))
		settle(time.Minute)
		if n := len(drained.all()); n < 3 || n > 6 {
			t.Errorf("%d tries in the first minute, want pauses of 5 s, 10 s, 20 s: %v", n, drained.all())
		}
		settle(24 * time.Hour)
		if n := len(drained.all()); n < 1200 || n > 1450 {
			t.Errorf("%d tries in a day, want one a minute", n)
		}
		if g := gateOf(t, lot, "a"); g != before || g.Wanted() == nil {
			t.Errorf("gate %+v, want it wanted as it was, and nothing written", g)
		}
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		settle(70 * time.Second)
		if diff := cmp.Diff([]string{"a1", "a2", "a3"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		if _, err := lot.Gate(t.Context(), "a"); !fault.Is(err, fault.NotFound) {
			t.Errorf("gate: %v, want it open", err)
		}
	})
}

func TestAKeyThatWaitedAndIsRefusedWaitsForAnOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		if err := r.Park(t.Context(), waitingLetter("a a1 1", 1)); err != nil {
			t.Fatal(err)
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@2", "a a3 3@3")); failed != nil {
			t.Fatal(failed)
		}
		refusing := publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			n := slices.IndexFunc(groups[0].Messages, func(m relay.Message) bool { return m.ID == "a2" })
			groups[0].Messages = groups[0].Messages[:n]
			return errors.Join(&relay.PublishError{Keys: []relay.KeyError{{Sent: n, Err: errTooLarge}}}, b.Publish(ctx, groups))
		})
		drained := &told{}
		run(t, newDrainer(t, lot, refusing, relay.DrainOptions{}, drained))
		settle(time.Hour)
		g := gateOf(t, lot, "a")
		closing := relay.Closing{Event: "a2", Reason: "too_large", Error: errTooLarge.Error(), At: g.TriedAt}
		if g.Closing != closing || g.TriedAt.Location() != time.UTC || time.Since(g.TriedAt) < 59*time.Minute || g.Wanted() != nil {
			t.Errorf("gate %+v, want it parked because of a2, an hour ago", g)
		}
		if diff := cmp.Diff([]string{"a2 held", "a3 held"}, line(t, lot, "a")); diff != "" || len(drained.all()) != 1 {
			t.Errorf("drained %v, parked (-want +got):\n%s", drained.all(), diff)
		}
	})
}

// A refusal that may be the fault of the broker's set-up parks no key for good until
// something else was accepted.
func TestASetUpThatRefusesEverythingKeepsKeysWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		notAllowed := &relay.Error{Class: relay.Refused, Reason: "not_allowed", Ambiguous: true}
		b.fail = map[string]relay.KeyError{"a": {Err: notAllowed}, "b": {Err: notAllowed}}
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		for _, key := range []string{"a", "b"} {
			if err := r.Park(t.Context(), waitingLetter(key+" "+key+"1 1", 1)); err != nil {
				t.Fatal(err)
			}
		}
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, nil))
		settle(time.Hour)
		for _, key := range []string{"a", "b"} {
			if g, err := lot.Gate(t.Context(), key); err != nil || !g.Closing.Auto {
				t.Errorf("gate %+v, %v; want it to wait for the broker", g, err)
			}
		}
		b.mu.Lock()
		delete(b.fail, "a")
		b.mu.Unlock()
		settle(5 * time.Minute)
		if g, err := lot.Gate(t.Context(), "b"); err != nil || g.Closing.Auto || g.Closing.Reason != "not_allowed" {
			t.Errorf("gate %+v, %v; want b refused once a was accepted", g, err)
		}
	})
}

// During an outage a look tries three keys, other ones each time, not all of them.
func TestAnOutageIsNotTriedWithEveryKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lot := parkedtest.NewMemory()
		r := newRelay(t, &broker{}, withLot(lot, relay.Options{}))
		for n := range 30 {
			if err := r.Park(t.Context(), waitingLetter(fmt.Sprintf("k%d e%d 1", n, n), 1)); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		keys := map[string]bool{} // guarded by mu
		tried := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(keys)
		}
		away := publisherCtx(func(_ context.Context, groups []relay.Group) error {
			mu.Lock()
			defer mu.Unlock()
			keys[groups[0].Key] = true
			return errBusy
		})
		run(t, newDrainer(t, lot, away, relay.DrainOptions{}, nil))
		settle(time.Second)
		if n := tried(); n != 3 {
			t.Errorf("tried %d keys at once, want three", n)
		}
		settle(10 * time.Minute)
		if n := tried(); n != 30 {
			t.Errorf("tried %d keys in ten minutes, want each", n)
		}
	})
}

// store has events as they stand now; an empty one was removed.
type store struct {
	mu     sync.Mutex // guards events
	events map[string]string
}

func (s *store) put(id, document string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil {
		s.events = map[string]string{}
	}
	s.events[id] = document
}

func (s *store) Event(_ context.Context, _, id string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch document, ok := s.events[id]; {
	case !ok:
		return nil, errors.New("the store is away")
	case document == "":
		return nil, fault.New(fault.NotFound, "", "no event")
	default:
		return []byte(document), nil
	}
}

func TestARetryFromTheStoreSendsWhatStandsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		var newer []string
		r := newRelay(t, b, withLot(lot, relay.Options{Observer: relay.Observer{Newer: func(_ context.Context, e relay.ParkedEvent) {
			newer = append(newer, e.ID)
		}}}))
		if err := r.Park(t.Context(), letter("a a1 ?", 1, errTooLarge)); err != nil {
			t.Fatal(err)
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@2", "a a1 ?@1")); failed != nil {
			t.Fatal(failed)
		}
		if len(newer) != 0 {
			t.Errorf("told of %v, which came again as they are parked", newer)
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1@3", "a a3 3@4")); failed != nil {
			t.Fatal(failed)
		}
		if diff := cmp.Diff([]string{"a1"}, newer); diff != "" {
			t.Errorf("told of newer events (-want +got):\n%s", diff)
		}
		stored, bodies := &store{}, map[string]string{}
		stored.put("a1", "a a1 1 mended")
		seeing := publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			for _, m := range groups[0].Messages {
				bodies[m.ID] = string(m.Body)
			}
			return b.Publish(ctx, groups)
		})
		drained := &told{}
		run(t, newDrainer(t, lot, seeing, relay.DrainOptions{Stored: stored}, drained))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(10 * time.Second)
		if b.sent != 0 {
			t.Fatalf("sent %v, which was parked unfit", b.got)
		}
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, FromStore: true})
		settle(7 * time.Second) // the store is away for a2
		stored.put("a2", "a a2 2")
		stored.put("a3", "a a3 3")
		settle(time.Minute)
		if diff := cmp.Diff([]string{"a1", "a2", "a3"}, b.got["a"]); diff != "" || bodies["a1"] != "a a1 1 mended" {
			t.Errorf("sent %v, published (-want +got):\n%s", bodies, diff)
		}
		all := drained.all()
		if last := all[len(all)-1]; last != "a sent 2 differ 0 skip false open true unknown" || strings.Count(strings.Join(all, "\n"), "sent 1 differ 1 skip false open false") != 1 {
			t.Errorf("drained %v", all)
		}
	})
}

func TestARetryFromTheStoreOfWhatIsGoneIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 3)
		drained := &told{}
		stored := &store{}
		stored.put("a1", "a a1 1")
		stored.put("a2", "")
		run(t, newDrainer(t, lot, b, relay.DrainOptions{Stored: stored}, drained))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, FromStore: true})
		settle(10 * time.Second)
		g, err := lot.Gate(t.Context(), "a")
		if err != nil || g.Intent != nil || g.Attempts != 1 || b.sent != 1 {
			t.Fatalf("gate %+v, %v, sent %v; want the intent given up behind a1", g, err, b.got)
		}
		if diff := cmp.Diff([]string{"a sent 1 differ 0 skip false open false not_stored"}, drained.all()); diff != "" {
			t.Errorf("drained (-want +got):\n%s", diff)
		}
	})
}
