package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
)

var (
	errBusy       = &relay.Error{Class: relay.Outage, Reason: "busy"}
	errFull       = &relay.Error{Class: relay.Blocked, Reason: "entity_full"}
	errTooLarge   = &relay.Error{Class: relay.Refused, Reason: "too_large"}
	errNotAllowed = &relay.Error{Class: relay.Refused, Reason: "not_allowed", Ambiguous: true}
)

// failing makes the broker fail these keys, each by itself.
func failing(err *relay.Error, keys ...string) map[string]relay.KeyError {
	fail := map[string]relay.KeyError{}
	for _, key := range keys {
		own := *err
		fail[key] = relay.KeyError{Err: &own}
	}
	return fail
}

// verdicts are the class and reason of each failure that is its event's own.
func verdicts(failed []relay.Failure) (list []string) {
	for _, f := range failed {
		if !f.Held {
			list = append(list, fmt.Sprintf("%s %s", f.ID, relay.ClassOf(f.Err)))
		}
	}
	return list
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// notBefore is until when the first failure asks to wait.
func notBefore(failed []relay.Failure) time.Time {
	e, _ := errors.AsType[*relay.Error](failed[0].Err)
	return e.NotBefore
}

// tally is a broker that counts calls and the groups in them.
type tally struct {
	broker
	calls, groups, alone int
}

func (b *tally) Publish(ctx context.Context, groups []relay.Group) error {
	b.mu.Lock()
	b.calls++
	b.groups += len(groups)
	for _, g := range groups {
		if g.Alone {
			b.alone++
		}
	}
	b.mu.Unlock()
	return b.broker.Publish(ctx, groups)
}

// One key that fails is that key's trouble: all others pass, every time, at once.
func TestOneKeysOutageIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &tally{broker: broker{fail: failing(errBusy, "a")}}
		var sum relay.Summary
		r := newRelay(t, b, &relay.Options{Observer: relay.Observer{
			Handled: func(_ context.Context, s relay.Summary) { sum = s },
			Paused:  func(context.Context, relay.Pause) { t.Error("all sends pause for one key") },
		}})
		began := time.Now()
		for n := 1; n <= 50; n++ {
			failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", fmt.Sprintf("b b%d %d", n, n), fmt.Sprintf("c c%d %d", n, n)))
			want(t, "page", verdicts(failed), "a1 outage")
			if !notBefore(failed).IsZero() {
				t.Error("nobody knows when the key can be sent, and a time is given")
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

// What was accepted of a key before its failure is not named.
func TestWhatWasAcceptedIsDone(t *testing.T) {
	b := &broker{fail: map[string]relay.KeyError{"a": {Sent: 2, Err: errTooLarge}}}
	failed := newRelay(t, b, nil).Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "a a2 2", "a a3 3", "a a4 4"))
	want(t, "failures", failures(failed), "2 a3 false", "3 a4 true")
}

// A broker that is away is asked with one key at a time, by however many pages, with
// pauses that grow; and all go on at once when it accepts again.
func TestABrokerThatIsAwayIsAskedOneAtATime(t *testing.T) {
	for _, failure := range []*relay.Error{errBusy, errFull, {Class: relay.Refused, Reason: "not_allowed", Ambiguous: true}} {
		synctest.Test(t, func(t *testing.T) {
			const pages, length = 16, 10 * time.Minute
			var keys []string
			for n := range pages {
				keys = append(keys, fmt.Sprint("a", n), fmt.Sprint("b", n), fmt.Sprint("c", n))
			}
			b := &tally{broker: broker{fail: failing(failure, keys...)}}
			var pauses atomic.Int64
			r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(_ context.Context, p relay.Pause) {
				pauses.Add(1)
				if relay.ReasonOf(p.Err) != failure.Reason || !p.Until.After(time.Now()) {
					t.Errorf("paused until %s for %v", p.Until, p.Err)
				}
			}}})
			var running sync.WaitGroup
			for n := range pages {
				running.Go(func() { // as a lane does: again when it may
					page := changes(fmt.Sprintf("a%d x%d 1", n, n), fmt.Sprintf("b%d y%d 1", n, n), fmt.Sprintf("c%d z%d 1", n, n))
					for {
						failed := r.Handle(t.Context(), relay.Ownership{}, page)
						if failed == nil {
							return
						}
						if relay.ClassOf(failed[0].Err) == relay.Refused {
							t.Errorf("%v, want it to wait", failed)
							return
						}
						time.Sleep(max(time.Millisecond, time.Until(notBefore(failed))))
					}
				})
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			b.mu.Lock()
			before := b.groups
			b.mu.Unlock()
			time.Sleep(length)
			synctest.Wait()
			b.mu.Lock()
			sends := b.groups - before
			b.fail = nil
			b.mu.Unlock()
			if most := int(length / (4 * time.Second)); sends == 0 || sends > most {
				t.Errorf("%s: %d keys sent in %s, want 1 to %d", failure.Reason, sends, length, most)
			}
			began := time.Now()
			running.Wait()
			if took := time.Since(began); took > 6*time.Second || b.sent != 3*pages {
				t.Errorf("%d events sent %s after the broker came back", b.sent, took)
			}
			if pauses.Load() == 0 {
				t.Error("nobody was told of a pause")
			}
		})
	}
}

// A page that comes while the broker is away is answered without a send, and told when
// to come again.
func TestNothingIsSentDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the cause")
		b := &tally{broker: broker{fail: failing(&relay.Error{Reason: "busy", Err: cause}, "a", "b", "c")}}
		r := newRelay(t, b, nil)
		want(t, "first", verdicts(r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))), "a1 outage", "b1 outage", "c1 outage")
		b.fail = nil
		calls := b.calls
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("d d1 1", "e e1 1", "x x1 ?"))
		want(t, "during the pause", verdicts(failed), "d1 outage", "e1 outage", "x1 refused")
		if err := failed[0].Err; relay.ReasonOf(err) != "busy" || !errors.Is(err, cause) {
			t.Errorf("d1 waits for %v, want the cause of the pause", err)
		}
		if wait := time.Until(notBefore(failed)); b.calls != calls || wait < 80*time.Millisecond || wait > 120*time.Millisecond {
			t.Errorf("%d sends, wait for %s; want none and about 100 ms", b.calls-calls, wait)
		}
		time.Sleep(time.Until(notBefore(failed)))
		for _, sends := range []int{2, 1} { // one key that can be sent ahead of the others; then all at once
			b.groups, b.calls = 0, 0
			failed := r.Handle(t.Context(), relay.Ownership{}, changes("x x1 ?", "y y1 ?", "d d1 1", "e e1 1", "f f1 1"))
			if want(t, "after the pause", verdicts(failed), "x1 refused", "y1 refused"); b.groups != 3 || b.calls != sends {
				t.Errorf("%d groups in %d sends; want 3 in %d", b.groups, b.calls, sends)
			}
		}
	})
}

// Keys go ahead in turns: one that always fails does not keep the broker away.
func TestAKeyThatFailsDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{fail: failing(errBusy, "a", "b", "c")}
		r := newRelay(t, b, nil)
		page := changes("a a1 1", "b b1 1", "c c1 1")
		failed := r.Handle(t.Context(), relay.Ownership{}, page)
		b.fail = failing(errBusy, "a")
		for range 3 {
			time.Sleep(time.Until(notBefore(failed)))
			if failed = r.Handle(t.Context(), relay.Ownership{}, page); len(b.got["b"]) > 0 {
				break
			}
		}
		want(t, "after the outage", verdicts(failed), "a1 outage")
		if len(b.got["b"]) == 0 || len(b.got["c"]) == 0 {
			t.Errorf("sent %v, want all but a", b.got)
		}
	})
}

// The third key that is refused in words that fit the set-up as well shows that it is
// the set-up; only the first two may be taken for poison.
func TestOnlyTheFirstKeysOfAGeneralRefusalCountAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{fail: failing(errNotAllowed, "a", "b", "c")}
		r := newRelay(t, b, nil)
		var got []string
		for _, key := range []string{"a", "b", "c", "a", "b"} {
			failed := r.Handle(t.Context(), relay.Ownership{}, changes(key+" "+key+"1 1"))
			got = append(got, verdicts(failed)...)
			time.Sleep(10 * time.Second)
		}
		want(t, "nothing passes", got, "a1 refused", "b1 refused", "c1 blocked", "a1 blocked", "b1 blocked")
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("e e1 1")); failed != nil {
			t.Fatal(failed)
		}
		want(t, "another key has passed", verdicts(r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1"))), "a1 refused")
	})
}

// A single poison message gets its attempts, whether anything else is sent or not, and
// what passes on the same page is evidence.
func TestRefusedKeysArePoison(t *testing.T) {
	b := &broker{fail: failing(errNotAllowed, "a", "b", "c")}
	r := newRelay(t, b, nil)
	for range 6 {
		want(t, "alone", verdicts(r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1"))), "a1 refused")
	}
	for range 3 {
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1", "x x1 1"))
		want(t, "others pass", verdicts(failed), "a1 refused", "b1 refused", "c1 refused")
	}
}

// One batch that fails for all the keys in it is one failure: it may be the fault of one
// of them.
func TestABatchOfManyKeysIsOneFailure(t *testing.T) {
	b := &broker{fail: map[string]relay.KeyError{"a": {Err: errBusy}, "b": {Err: errBusy}, "c": {Err: errBusy}, "d": {Err: errBusy}}}
	r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(context.Context, relay.Pause) { t.Error("all sends pause for one batch") }}})
	_ = r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1", "d d1 1"))
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("e e1 1")); failed != nil {
		t.Errorf("%v, want it sent", failed)
	}
}

// A message that is too large is its own fault, however many there are.
func TestACertainRefusalIsNotDoubted(t *testing.T) {
	b := &broker{fail: failing(errTooLarge, "a", "b", "c", "d")}
	r := newRelay(t, b, nil)
	for range 3 {
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1", "d d1 1"))
		want(t, "too large", verdicts(failed), "a1 refused", "b1 refused", "c1 refused", "d1 refused")
	}
}

// What the end of the context stopped shows nothing about the broker.
func TestTheEndOfTheLeaseIsNoEvidence(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	r := newRelay(t, publisherFunc(func(groups []relay.Group) error {
		if calls++; calls > 1 {
			return nil
		}
		cancel()
		return ctx.Err()
	}), nil)
	want(t, "cut off", verdicts(r.Handle(ctx, relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))), "a1 outage", "b1 outage", "c1 outage")
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("d d1 1")); failed != nil {
		t.Errorf("%v, want it sent", failed)
	}
}

// A failure that nobody knows costs time, never an event.
func TestAnUnknownFailureIsAnOutage(t *testing.T) {
	cause := errors.New("something else")
	r := newRelay(t, publisherFunc(func([]relay.Group) error { return cause }), nil)
	failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "-", "b b1 1"))
	want(t, "unknown", verdicts(failed), "a1 outage", "b1 outage")
	if !errors.Is(failed[0].Err, cause) {
		t.Error("the cause is not reachable")
	}
}

// Two keys that fail, again and again, pause nobody: one more must fail.
func TestTwoKeysThatFailPauseNobody(t *testing.T) {
	b := &broker{fail: failing(errBusy, "a", "b")}
	r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(context.Context, relay.Pause) { t.Error("all sends pause for two keys") }}})
	for range 5 {
		want(t, "two keys", verdicts(r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1"))), "a1 outage", "b1 outage")
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("c c1 1")); failed != nil {
		t.Errorf("%v, want it sent", failed)
	}
}

// Failures with something accepted in between are not those of the broker.
func TestWhatPassesInBetweenIsEvidence(t *testing.T) {
	b := &broker{fail: failing(errNotAllowed, "a", "b", "c")}
	r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(context.Context, relay.Pause) { t.Error("all sends pause") }}})
	for _, key := range []string{"a", "b", "x", "c", "x", "a"} {
		failed := r.Handle(t.Context(), relay.Ownership{}, changes(key+" "+key+"1 1"))
		if key == "x" {
			want(t, key, verdicts(failed))
		} else {
			want(t, key, verdicts(failed), key+"1 refused")
		}
	}
}

// The pauses of an outage do not begin where those of the last one ended.
func TestPausesBeginSmallAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		r := newRelay(t, b, nil)
		page := changes("a a1 1", "b b1 1", "c c1 1")
		for range 2 {
			b.fail = failing(errBusy, "a", "b", "c")
			failed := r.Handle(t.Context(), relay.Ownership{}, page)
			if wait := time.Until(notBefore(failed)); wait <= 0 || wait > 150*time.Millisecond {
				t.Errorf("the first pause is %s, want about 100 ms", wait)
			}
			for range 10 {
				time.Sleep(time.Until(notBefore(failed)))
				failed = r.Handle(t.Context(), relay.Ownership{}, page)
			}
			if wait := time.Until(notBefore(failed)); wait < 4*time.Second || wait > 6*time.Second {
				t.Errorf("the last pause is %s, want about 5 s", wait)
			}
			b.fail = nil
			time.Sleep(time.Until(notBefore(failed)))
			if failed := r.Handle(t.Context(), relay.Ownership{}, page); failed != nil {
				t.Error(failed)
			}
		}
	})
}

// A message that is too large is refused as such also while all else waits.
func TestACertainRefusalBesideAnOutage(t *testing.T) {
	b := &broker{fail: failing(errBusy, "b", "c", "d")}
	b.fail["a"] = relay.KeyError{Err: errTooLarge}
	failed := newRelay(t, b, nil).Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1", "d d1 1"))
	want(t, "one too large", verdicts(failed), "a1 refused", "b1 outage", "c1 outage", "d1 outage")
}

// Of the reasons of a pause operators are told the one that only they can cure.
func TestTheCauseThatAPersonMustCureIsTold(t *testing.T) {
	b := &broker{fail: failing(errBusy, "a", "c")}
	b.fail["b"] = relay.KeyError{Err: errFull}
	var told []string
	r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(_ context.Context, p relay.Pause) { told = append(told, relay.ReasonOf(p.Err)) }}})
	_ = r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))
	want(t, "told", told, "entity_full")
}

// However many pages there are when a pause ends, one of them asks, and the others wait
// for its answer.
func TestOneProbeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		groups, most := 0, 0
		away := true
		r := newRelay(t, publisherFunc(func(g []relay.Group) error {
			mu.Lock()
			groups += len(g)
			most = max(most, groups)
			failed := away
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			groups -= len(g)
			if !failed {
				return nil
			}
			var all relay.PublishError
			for i := range g {
				own := *errBusy
				all.Keys = append(all.Keys, relay.KeyError{Group: i, Err: &own})
			}
			return &all
		}), nil)
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))
		time.Sleep(time.Until(notBefore(failed)))
		most = 0
		var running sync.WaitGroup
		for n := range 8 {
			running.Go(func() {
				_ = r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("x%d x 1", n), fmt.Sprintf("y%d y 1", n)))
			})
		}
		running.Wait()
		if most != 1 {
			t.Errorf("%d keys were sent at once to a broker that is away, want 1", most)
		}
	})
}
