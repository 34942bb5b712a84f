package relay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
)

// Every pause has its length, give or take a fifth.
func TestPausesHaveTheirLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelay(t, &broker{fail: failing(errBusy, "a", "b", "c")}, nil)
		page := changes("a a1 1", "b b1 1", "c c1 1")
		length := 100 * time.Millisecond
		for n := range 300 {
			failed := r.Handle(t.Context(), relay.Ownership{}, page)
			wait := time.Until(notBefore(failed))
			if wait < length*8/10 || wait > length*12/10 {
				t.Fatalf("pause %d is %s, want about %s", n, wait, length)
			}
			length = min(2*length, 5*time.Second)
			time.Sleep(wait - time.Nanosecond)
			if early := r.Handle(t.Context(), relay.Ownership{}, page); !notBefore(early).Equal(notBefore(failed)) {
				t.Fatalf("a send before the end of pause %d", n)
			}
			time.Sleep(time.Nanosecond)
		}
	})
}

// Failures that nobody knows are one for each key: three show that it is the broker.
func TestUnknownFailuresOfThreeKeysAreTheBrokers(t *testing.T) {
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

// The keys that failed are remembered up to a bound; a key that is forgotten is not sent
// alone any more.
func TestTroubledKeysAreRememberedInBounds(t *testing.T) {
	const limit = 10_000
	b := &tally{broker: broker{fail: map[string]relay.KeyError{}}}
	r := newRelay(t, b, nil)
	lines := []string{"fine f1 1"} // shows that it is not the broker
	for n := range limit {
		key := fmt.Sprint("k", n)
		lines = append(lines, key+" e 1")
		b.fail[key] = relay.KeyError{Err: errBusy}
	}
	for _, again := range []int{0, limit} { // how many of them failed before
		b.alone = 0
		if r.Handle(t.Context(), relay.Ownership{}, changes(lines...)); b.alone != again {
			t.Fatalf("%d keys are sent alone, want %d", b.alone, again)
		}
	}
	b.alone = 0
	r.Handle(t.Context(), relay.Ownership{}, changes("fine f2 2", "k0 e 1")) // of the known ones, one more time
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

// What is remembered of a key that failed must not be the memory of a page, which the
// feed uses again for the next one.
func TestTroubledKeysOutliveThePage(t *testing.T) {
	b := &tally{broker: broker{fail: failing(errBusy, "a")}}
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

// What counts is when a key failed the last time, not the first.
func TestKeysThatFailAgainAreEvidence(t *testing.T) {
	b := &tally{broker: broker{fail: failing(errBusy, "a", "b", "c")}}
	r := newRelay(t, b, nil)
	for _, key := range []string{"a", "b", "x", "a", "b", "c"} {
		r.Handle(t.Context(), relay.Ownership{}, changes(key+" e 1"))
	}
	if r.Handle(t.Context(), relay.Ownership{}, changes("y e 1")); b.sent != 1 {
		t.Errorf("%d events were accepted, want only x: three keys failed since", b.sent)
	}
}

// Who loses its range while another page probes the broker sends nothing.
func TestAPageThatEndsDuringAProbeSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &tally{broker: broker{fail: failing(errBusy, "a", "b", "c")}}
		slow := publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			defer time.Sleep(time.Minute)
			return b.Publish(ctx, groups)
		})
		r := newRelay(t, slow, nil)
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))
		time.Sleep(time.Until(notBefore(failed)))
		go r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		calls := b.calls
		if failed := r.Handle(ctx, relay.Ownership{}, changes("d d1 1")); len(failed) != 1 || b.calls != calls {
			t.Errorf("failed %v, %d sends; want d1 to fail unsent", failed, b.calls-calls)
		}
		time.Sleep(time.Hour)
	})
}

// What is told of an outage is its own cause, not that of the one before.
func TestEachOutageHasItsOwnCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		var told []string
		r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(_ context.Context, p relay.Pause) { told = append(told, relay.ReasonOf(p.Err)) }}})
		page := changes("a a1 1", "b b1 1", "c c1 1")
		for _, outage := range []*relay.Error{errFull, errBusy} {
			b.fail = failing(outage, "a", "b", "c")
			failed := r.Handle(t.Context(), relay.Ownership{}, page)
			b.fail = nil
			time.Sleep(time.Until(notBefore(failed)))
			if failed := r.Handle(t.Context(), relay.Ownership{}, page); failed != nil {
				t.Error(failed)
			}
		}
		want(t, "told", told, "entity_full", "busy")
	})
}

// away is a broker that fails each key by itself until it is back, and takes its time: a
// minute for key slow, an hour for key stuck.
type away struct {
	tally
	back atomic.Bool
}

func (b *away) Publish(ctx context.Context, groups []relay.Group) error {
	switch groups[0].Key {
	case "slow":
		time.Sleep(time.Minute)
		return nil
	case "stuck":
		time.Sleep(time.Hour)
	}
	if b.back.Load() {
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
	}
	return b.tally.Publish(ctx, groups)
}

// A message that is accepted after all ends the pause of all, also while the broker is asked
// with another that hangs.
func TestWhatIsAcceptedWhileAProbeHangsLetsAllPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &away{}
		b.fail = failing(errBusy, "a", "b", "c")
		r := newRelay(t, b, nil)
		go r.Handle(t.Context(), relay.Ownership{}, changes("slow s1 1"))
		synctest.Wait()
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))
		time.Sleep(time.Until(notBefore(failed)))
		go r.Handle(t.Context(), relay.Ownership{}, changes("stuck t1 1"))
		settle(time.Minute)
		began := time.Now()
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("d d1 1")); failed != nil || time.Since(began) != 0 {
			t.Errorf("failed %v after %s, want it sent at once", failed, time.Since(began))
		}
		time.Sleep(time.Hour)
	})
}

// Who waited for the answer to a probe sends all at once when that was accepted.
func TestAfterAProbeAllIsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &away{}
		b.fail = failing(errBusy, "a", "b", "c")
		r := newRelay(t, b, nil)
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))
		time.Sleep(time.Until(notBefore(failed)))
		b.back.Store(true)
		calls := b.calls
		go r.Handle(t.Context(), relay.Ownership{}, changes("stuck t1 1"))
		synctest.Wait()
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1")); failed != nil || b.calls != calls+2 {
			t.Errorf("failed %v, %d sends; want one of the probe and one of all", failed, b.calls-calls)
		}
	})
}
