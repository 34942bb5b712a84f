package relay_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

func TestRetryDrainsInOrderWhileEventsArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkAll(t, r, "a", 8)
		drained := &reportLog{}
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, drained))
		settle(time.Minute)
		if b.sent != 0 {
			t.Fatal("drained without an intent")
		}
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, By: "ann"})
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
		if _, err := mem.Gate(t.Context(), "a"); err == nil || len(drained.all()) != 1 {
			t.Errorf("gate %v, drained %v; want it open after one try", err, drained.all())
		}
	})
}

func TestDrainStopsAtRefusedEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkAll(t, r, "a", 2)
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a3 ?@2", "a a4 4@3")); failed != nil {
			t.Fatal(failed)
		}
		drained := &reportLog{}
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, drained))
		closing := gateOf(t, mem, "a").Closing
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(10 * time.Second)
		if diff := cmp.Diff([]string{"a3 invalid_event", "a4 held"}, parkedIDs(t, mem, "a")); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
		g := gateOf(t, mem, "a")
		if g.Intent != nil || g.Attempts != 1 || g.Error == "" || g.Closing != closing {
			t.Errorf("gate %+v, want it closed as it was, without intent, with the error", g)
		}

		mem.ReplaceEvent("a", "a3", []byte("a a3 3"))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry})
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

func TestSkipKeepsRecordAndSendsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkAll(t, r, "a", 3)
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, nil))

		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a2"})
		settle(10 * time.Second)
		if g, err := mem.Gate(t.Context(), "a"); err != nil || g.Intent != nil || b.sent != 0 {
			t.Errorf("gate %+v, %v; want an event that is not the first to stay", g, err)
		}
		skip := relay.Intent{Verb: relay.VerbSkip, Event: "a1", By: "ann", Note: "test data"}
		setIntent(t, mem, "a", skip)
		settle(10 * time.Second)
		if diff := cmp.Diff([]string{"a2", "a3"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		skipped, _ := mem.Skipped(t.Context(), "a")
		if len(skipped) != 1 || skipped[0].Event.ID != "a1" || skipped[0].Intent != skip {
			t.Errorf("records %+v, want a1 with the intent of ann", skipped)
		}
	})
}

func TestDrainContinuesAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkAll(t, r, "a", 5)
		b.fail = map[string]relay.KeyError{"a": {Sent: 1, Err: errBusy}}
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, nil))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry})
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

// The range moves to another process during a step. The step ends with the lease, and the other
// process continues.
func TestOnlyRangeOwnerDrainsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
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
		mine, other := &reportLog{}, &reportLog{}
		run(t, newDrainerOf(t, mem, here, slow, relay.DrainOptions{}, mine))
		run(t, newDrainerOf(t, mem, there, b, relay.DrainOptions{}, other))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(time.Minute)
		if b.sent != 0 || len(other.all()) != 0 {
			t.Fatalf("%d events sent, reported %v, by a process that does not own the range", b.sent, other.all())
		}
		here.lose()
		hangs.Store(false)
		settle(time.Minute)
		if b.sent != 0 || len(mine.all()) != 1 || len(other.all()) != 0 {
			t.Fatalf("%d events sent, reported %v and %v; want the send ended with the lease, and nothing without one", b.sent, mine.all(), other.all())
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

// If the gate changes during a send, the sent events are removed from the changed gate.
func TestSentEventsAreRemovedFromChangedGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkAll(t, r, "a", 3)
		newer := relay.Intent{Verb: relay.VerbRetry, By: "bob"}
		busy := publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			if len(b.got["a"]) == 0 {
				setIntent(t, mem, "a", newer)
				if failed := r.Handle(ctx, relay.Ownership{}, changes("a a4 4@9")); failed != nil {
					t.Error(failed)
				}
			}
			return b.Publish(ctx, groups)
		})
		run(t, newDrainer(t, mem, busy, relay.DrainOptions{}, nil))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, By: "ann"})
		settle(time.Minute)
		if diff := cmp.Diff([]string{"a1", "a2", "a3", "a4"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

// An operator's intent ends at an ambiguous refusal even if nothing else was accepted, because the
// operator is waiting for the result.
func TestOperatorIntentEndsAtAmbiguousRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem, drained := &broker{fail: failing(errNotAllowed, "a")}, parkedtest.NewMemory(), &reportLog{}
		parkAll(t, newRelay(t, b, withParked(mem, relay.Options{})), "a", 1)
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, drained))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		settle(time.Minute)
		if g, err := mem.Gate(t.Context(), "a"); err != nil || g.Intent != nil || g.Attempts != 1 {
			t.Errorf("gate %+v, %v; want the intent given up at the first try", g, err)
		}
		if lines := drained.all(); len(lines) != 1 || lines[0] != "a sent 0 differ 0 skip false open false not_allowed" {
			t.Errorf("reported %q", lines)
		}
	})
}

// The report of a drain shows the skipped event and the open gate.
func TestDrainReportsSkipAndOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem, drained := &broker{}, parkedtest.NewMemory(), &reportLog{}
		parkAll(t, newRelay(t, b, withParked(mem, relay.Options{})), "a", 3)
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, drained))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a1", At: time.Now()})
		settle(time.Minute)
		if lines := drained.all(); len(lines) != 1 || lines[0] != "a sent 2 differ 0 skip true open true unknown" {
			t.Errorf("reported %q", lines)
		}
	})
}

// Parked events that were deleted from the store do not hold their key for ever, but the loss is reported.
func TestDrainReportsMissingEvents(t *testing.T) {
	for lost, want := range map[int64]relay.DrainReport{0: {Key: "a", Sent: 3, Opened: true}, 2: {Key: "a", Sent: 3, Opened: true, Missing: 2}} {
		synctest.Test(t, func(t *testing.T) {
			mem := parkedtest.NewMemory()
			parkAll(t, newRelay(t, &broker{}, withParked(mem, relay.Options{})), "a", 3)
			setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
			g := gateOf(t, mem, "a")
			g.Events += lost
			if _, err := mem.Update(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			if got := reports(t, mem, &owner{}, &broker{}, relay.DrainOptions{}); !slices.Equal(got, []relay.DrainReport{want}) {
				t.Errorf("%d of 5 deleted: reported %+v, want %+v", lost, got, want)
			}
		})
	}
}

// An event whose document was replaced by another event is not sent.
func TestEventWithChangedIdentityIsNotSent(t *testing.T) {
	for document, reason := range map[string]string{"a a9 1": "identity_changed", "z a1 1": "identity_changed", "-": "not_an_event"} {
		synctest.Test(t, func(t *testing.T) {
			b, mem, drained := &broker{}, parkedtest.NewMemory(), &reportLog{}
			parkAll(t, newRelay(t, b, withParked(mem, relay.Options{})), "a", 1)
			mem.ReplaceEvent("a", "a1", []byte(document))
			run(t, newDrainer(t, mem, b, relay.DrainOptions{}, drained))
			setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry})
			settle(time.Minute)
			if g, err := mem.Gate(t.Context(), "a"); err != nil || g.Intent != nil || g.Error == "" || b.sent != 0 {
				t.Errorf("%q: gate %+v, %v, %d sent; want it given up", document, g, err, b.sent)
			}
			want(t, document, drained.all(), "a sent 0 differ 0 skip false open false "+reason)
		})
	}
}

// An intent that arrives while an earlier one is dropped is not dropped with it.
func TestNewerIntentSurvivesDroppedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, tries := parkedtest.NewMemory(), 0
		parkAll(t, newRelay(t, &broker{}, withParked(mem, relay.Options{})), "a", 1)
		run(t, newDrainer(t, mem, publisherFunc(func([]relay.Group) error {
			if tries++; tries == 1 {
				setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, By: "bob", At: time.Now()})
			}
			return errTooLarge
		}), relay.DrainOptions{}, nil))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, By: "ann", At: time.Now()})
		settle(time.Minute)
		if tries != 2 {
			t.Errorf("%d tries, want one for each intent", tries)
		}
	})
}
