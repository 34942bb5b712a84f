package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
)

// While one key fails, all others are sent at once, every time.
func TestFailingKeyDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &countingBroker{broker: broker{fail: failing(errBusy, "a")}}
		var sum relay.Summary
		r := newRelay(t, b, &relay.Options{Observer: relay.Observer{
			Handled: func(_ context.Context, s relay.Summary) { sum = s },
			Paused:  func(context.Context, relay.Pause) { t.Error("all sends pause for one key") },
		}})
		began := time.Now()
		for n := 1; n <= 50; n++ {
			failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", fmt.Sprintf("b b%d %d", n, n), fmt.Sprintf("c c%d %d", n, n)))
			want(t, "page", classes(failed), "a1 outage")
			if !notBefore(failed).IsZero() {
				t.Error("NotBefore is set for a failure of one key")
			}
		}
		if len(b.got["b"]) != 50 || len(b.got["c"]) != 50 || time.Since(began) != 0 {
			t.Errorf("%d and %d events of other keys after %s, want 50 at once", len(b.got["b"]), len(b.got["c"]), time.Since(began))
		}
		if b.alone != 49 || sum.Resent != 1 {
			t.Errorf("the key was sent alone %d times, resent %d in the last page; want 49 and 1", b.alone, sum.Resent)
		}
		b.fail = nil
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1")); failed != nil || len(b.got["a"]) != 1 {
			t.Errorf("error %v, sent %v", failed, b.got["a"])
		}
		if _ = r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2", "b b51 51")); b.alone != 50 {
			t.Errorf("a key that was accepted is still sent alone")
		}
	})
}

// The third key with an ambiguous refusal shows that the set-up is at fault. Only the first two
// count as attempts.
func TestThirdAmbiguousRefusalIsBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{fail: failing(errNotAllowed, "a", "b", "c")}
		r := newRelay(t, b, nil)
		var got []string
		for _, key := range []string{"a", "b", "c", "a", "b"} {
			failed := r.Handle(t.Context(), relay.Ownership{}, changes(key+" "+key+"1 1"))
			got = append(got, classes(failed)...)
			time.Sleep(10 * time.Second)
		}
		want(t, "nothing passes", got, "a1 refused", "b1 refused", "c1 blocked", "a1 blocked", "b1 blocked")
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("e e1 1")); failed != nil {
			t.Fatal(failed)
		}
		want(t, "another key has passed", classes(r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1"))), "a1 refused")
	})
}

// A single refused message stays refused even if nothing else is sent, and three refused keys do
// so if another key on the page is accepted.
func TestRefusalsWithAcceptedKeysStayRefused(t *testing.T) {
	b := &broker{fail: failing(errNotAllowed, "a", "b", "c")}
	r := newRelay(t, b, nil)
	for range 6 {
		want(t, "alone", classes(r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1"))), "a1 refused")
	}
	for range 3 {
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1", "x x1 1"))
		want(t, "others pass", classes(failed), "a1 refused", "b1 refused", "c1 refused")
	}
}

// A batch that fails for all its keys counts as one failure, because one of them may have caused
// it.
func TestFailedBatchCountsOnce(t *testing.T) {
	b := &broker{fail: map[string]relay.KeyError{"a": {Err: errBusy}, "b": {Err: errBusy}, "c": {Err: errBusy}, "d": {Err: errBusy}}}
	r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(context.Context, relay.Pause) { t.Error("all sends pause for one batch") }}})
	_ = r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1", "d d1 1"))
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("e e1 1")); failed != nil {
		t.Errorf("%v, want it sent", failed)
	}
}

// Any number of messages that are too large do not pause other keys.
func TestUnambiguousRefusalStaysRefused(t *testing.T) {
	b := &broker{fail: failing(errTooLarge, "a", "b", "c", "d")}
	r := newRelay(t, b, nil)
	for range 3 {
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1", "d d1 1"))
		want(t, "too large", classes(failed), "a1 refused", "b1 refused", "c1 refused", "d1 refused")
	}
}

// A send that its context ended says nothing about the broker.
func TestContextEndIsNoBrokerFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	r := newRelay(t, publisherFunc(func(groups []relay.Group) error {
		if calls++; calls > 1 {
			return nil
		}
		cancel()
		return ctx.Err()
	}), nil)
	want(t, "cut off", classes(r.Handle(ctx, relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))), "a1 outage", "b1 outage", "c1 outage")
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("d d1 1")); failed != nil {
		t.Errorf("%v, want it sent", failed)
	}
}

// An unknown failure may delay events but must not drop any.
func TestUnknownFailureIsOutage(t *testing.T) {
	cause := errors.New("something else")
	r := newRelay(t, publisherFunc(func([]relay.Group) error { return cause }), nil)
	failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "-", "b b1 1"))
	want(t, "unknown", classes(failed), "a1 outage", "b1 outage")
	if !errors.Is(failed[0].Err, cause) {
		t.Error("the cause is not reachable")
	}
}

// Two keys that fail repeatedly are not enough for a pause.
func TestTwoFailingKeysDoNotPause(t *testing.T) {
	b := &broker{fail: failing(errBusy, "a", "b")}
	r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(context.Context, relay.Pause) { t.Error("all sends pause for two keys") }}})
	for range 5 {
		want(t, "two keys", classes(r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1"))), "a1 outage", "b1 outage")
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("c c1 1")); failed != nil {
		t.Errorf("%v, want it sent", failed)
	}
}

// Failures with an accepted message in between do not add up to a pause.
func TestAcceptedMessageResetsFailureCount(t *testing.T) {
	b := &broker{fail: failing(errNotAllowed, "a", "b", "c")}
	r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(context.Context, relay.Pause) { t.Error("all sends pause") }}})
	for _, key := range []string{"a", "b", "x", "c", "x", "a"} {
		failed := r.Handle(t.Context(), relay.Ownership{}, changes(key+" "+key+"1 1"))
		if key == "x" {
			want(t, key, classes(failed))
		} else {
			want(t, key, classes(failed), key+"1 refused")
		}
	}
}

// A message that is too large is refused even while all other keys wait for the broker.
func TestUnambiguousRefusalDuringOutageStaysRefused(t *testing.T) {
	b := &broker{fail: failing(errBusy, "b", "c", "d")}
	b.fail["a"] = relay.KeyError{Err: errTooLarge}
	failed := newRelay(t, b, nil).Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1", "d d1 1"))
	want(t, "one too large", classes(failed), "a1 refused", "b1 outage", "c1 outage", "d1 outage")
}

// Unknown failures count once per key, and three pause all sends.
func TestThreeUnknownFailuresPause(t *testing.T) {
	for keys, paused := range map[int]bool{2: false, 3: true} {
		calls := 0
		r := newRelay(t, publisherFunc(func(groups []relay.Group) error {
			calls++
			return &relay.PublishError{Keys: []relay.KeyError{{Err: errors.New("unheard of")}}}
		}), nil)
		for n := range keys {
			r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("k%d e%d 1", n, n)))
		}
		r.Handle(t.Context(), relay.Ownership{}, changes("other o1 1"))
		if sent := calls > keys; sent == paused {
			t.Errorf("after %d keys another one is sent: %v", keys, sent)
		}
	}
}

// Failing keys are remembered up to a bound. A forgotten key is no longer sent alone.
func TestFailingKeysAreBounded(t *testing.T) {
	const limit = 10_000
	b := &countingBroker{broker: broker{fail: map[string]relay.KeyError{}}}
	r := newRelay(t, b, nil)
	lines := []string{"fine f1 1"} // an accepted key, so that the broker is not blamed
	for n := range limit {
		key := fmt.Sprint("k", n)
		lines = append(lines, key+" e 1")
		b.fail[key] = relay.KeyError{Err: errBusy}
	}
	for _, again := range []int{0, limit} { // keys that failed before
		b.alone = 0
		if r.Handle(t.Context(), relay.Ownership{}, changes(lines...)); b.alone != again {
			t.Fatalf("%d keys are sent alone, want %d", b.alone, again)
		}
	}
	b.alone = 0
	r.Handle(t.Context(), relay.Ownership{}, changes("fine f2 2", "k0 e 1")) // a known key fails again
	if r.Handle(t.Context(), relay.Ownership{}, changes(lines...)); b.alone != 1+limit {
		t.Fatalf("%d keys are sent alone, want all that failed before", b.alone)
	}
	b.fail["more"] = relay.KeyError{Err: errBusy}
	b.alone = 0
	r.Handle(t.Context(), relay.Ownership{}, changes("fine f3 3", "more m 1"))
	r.Handle(t.Context(), relay.Ownership{}, changes(append(lines, "more m 1")...))
	if b.alone != 1 {
		t.Errorf("%d keys are sent alone, want only the one that failed after the bound was reached", b.alone)
	}
}

// A remembered key must not alias a document, because the feed reuses the memory of a page.
func TestFailingKeysDoNotAliasPage(t *testing.T) {
	b := &countingBroker{broker: broker{fail: failing(errBusy, "a")}}
	r, err := relay.New(aliasingDecoder{}, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		b.alone = 0
		raw := []byte("a 1")
		r.Handle(t.Context(), relay.Ownership{}, []relay.Change{{Raw: raw, LSN: 1}})
		copy(raw, "x 9")
		if again := n > 0; b.alone == 1 != again {
			t.Errorf("try %d is alone: %v", n, !again)
		}
	}
}

// The last failure of a key counts, not the first.
func TestRepeatedKeyFailureCountsAgain(t *testing.T) {
	b := &countingBroker{broker: broker{fail: failing(errBusy, "a", "b", "c")}}
	r := newRelay(t, b, nil)
	for _, key := range []string{"a", "b", "x", "a", "b", "c"} {
		r.Handle(t.Context(), relay.Ownership{}, changes(key+" e 1"))
	}
	if r.Handle(t.Context(), relay.Ownership{}, changes("y e 1")); b.sent != 1 {
		t.Errorf("%d events were accepted, want only x: three keys failed since", b.sent)
	}
}
