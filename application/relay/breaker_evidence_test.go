package relay_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// An event fails beside accepted ones; later a message is refused for certain. Neither is a reason
// to pause.
func TestCertainRefusalDoesNotPauseForOldFailures(t *testing.T) {
	b := &broker{fail: failing(errBusy, "a", "b", "c")}
	b.fail["bad"] = relay.KeyError{Err: errTooLarge}
	r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(_ context.Context, p relay.Pause) { t.Errorf("paused for %v", p.Err) }}})
	r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1", "fine f1 1"))
	r.Handle(t.Context(), relay.Ownership{}, changes("bad bad1 1"))
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("other o1 1")); failed != nil {
		t.Errorf("%v, want it sent", failed)
	}
}

// A waiting key is blamed only for what happened since its failure began: other keys were accepted,
// and there was no outage.
func TestKeyIsBlamedOnlyWithEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{fail: failing(errBusy, "a")}
		r := newRelay(t, b, nil)
		blamed := func(lines ...string) bool {
			failed := r.Handle(t.Context(), relay.Ownership{}, changes(append(lines, "a a1 1")...))
			return len(failed) == 1 && failed[0].Blamed
		}
		check := func(what string, got, want bool) {
			t.Helper()
			if got != want {
				t.Errorf("%s: blamed %t", what, got)
			}
		}
		check("first failure, beside an accepted key", blamed("x x1 1"), false)
		check("nothing accepted since", blamed(), false)
		check("another key accepted", blamed("x x2 2"), true)
		check("evidence stays", blamed(), true)
		b.fail = failing(errBusy, "a", "b", "c", "d")
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1", "d d1 1"))
		for _, f := range failed {
			check("outage, "+f.Key, f.Blamed, false)
		}
		b.fail = failing(errBusy, "a")
		time.Sleep(time.Until(notBefore(failed)))
		check("the probe after the outage", blamed(), false)
		time.Sleep(time.Minute)
		check("the outage is over", blamed("x x3 3"), true)
		b.fail = map[string]relay.KeyError{"a": {Sent: 1, Err: errBusy}}
		failed = r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "a a2 2"))
		check("a message of the key was accepted", len(failed) != 1 || failed[0].Blamed, false)
		b.fail = failing(errBusy, "a")
		check("another key accepted since", blamed("x x4 4"), true)
		b.fail = failing(errUnreachable, "a")
		check("another reason of the same class", blamed(), true)
		b.fail = failing(errNotAllowed, "a")
		check("another class", blamed(), false)
	})
}

// The listing of gates panics once. The next page lists them again.
func TestPanickingListingIsRepeated(t *testing.T) {
	mem := &panickingStore{Memory: parkedtest.NewMemory()}
	r := newRelay(t, &broker{}, withParked(mem, relay.Options{}))
	func() {
		defer func() { _ = recover() }()
		r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1"))
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if failed := r.Handle(ctx, relay.Ownership{}, changes("a a1 1")); failed != nil {
		t.Error(failed)
	}
}

type panickingStore struct {
	*parkedtest.Memory
	panicked bool
}

func (s *panickingStore) Closed(ctx context.Context) ([]string, error) {
	if !s.panicked {
		s.panicked = true
		panic(errors.New("a bug"))
	}
	return s.Memory.Closed(ctx)
}

// A panic of the publisher fails the keys of its call, and of no other.
func TestPublisherPanicFailsItsKeys(t *testing.T) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic %v", p)
		}
	}()
	r := newRelay(t, publisherFunc(func(groups []relay.Group) error {
		if groups[0].Key == "a" {
			panic("a bug")
		}
		return nil
	}), nil)
	failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1"))
	want(t, "failed", classes(failed), "a1 outage")
	if reason := relay.ReasonOf(failed[0].Err); reason != "publisher_panic" {
		t.Errorf("reason %s", reason)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("b b1 1")); failed != nil {
		t.Error(failed)
	}
}

// An observer panics during a probe. The probe ends, and the next page is sent.
func TestObserverPanicEndsTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, pauses := &broker{fail: failing(errBusy, "a", "b", "c")}, 0
		r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(context.Context, relay.Pause) {
			if pauses++; pauses == 2 {
				panic("a bug")
			}
		}}})
		r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))
		time.Sleep(time.Second)
		func() {
			defer func() { _ = recover() }()
			r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1"))
		}()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if failed := r.Handle(ctx, relay.Ownership{}, changes("d d1 1")); failed != nil {
			t.Errorf("%v, want it sent", failed)
		}
	})
}
