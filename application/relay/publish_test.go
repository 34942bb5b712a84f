package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
)

var (
	errBusy      = &relay.Error{Class: relay.Outage, Reason: "busy"}
	errFull      = &relay.Error{Class: relay.Blocked, Reason: "entity_full"}
	errTooLarge  = &relay.Error{Class: relay.Refused, Reason: "too_large"}
	errCutOff    = &relay.Error{Class: relay.Outage, Reason: "connection_lost", Ambiguous: true}
	errThrottled = &relay.Error{Class: relay.Outage, Reason: "busy", RetryAfter: 7 * time.Second}
)

func TestAnOutageIsWaitedOutAndOnlyTheRestSentAgain(t *testing.T) {
	for _, failure := range []*relay.Error{errBusy, errFull} {
		synctest.Test(t, func(t *testing.T) {
			b := &broker{fail: map[string]relay.KeyError{"a": {Sent: 1, Err: failure}, "c": {Untried: true, Err: failure}}}
			var rounds []string
			var sum relay.Summary
			handled := func(_ context.Context, s relay.Summary) { sum = s }
			r := newRelay(t, b, &relay.Options{Hooks: relay.Hooks{Handled: handled, Retrying: func(_ context.Context, x relay.Retry) {
				rounds = append(rounds, fmt.Sprintf("%d %d %s", x.Round, x.Keys, relay.ReasonOf(x.Err)))
				if x.Round == 3 {
					b.fail = nil
				} else {
					b.fail = map[string]relay.KeyError{"a": {Err: failure}, "c": {Untried: true, Err: failure}}
				}
			}}})
			began := time.Now()
			if err := r.Handle(t.Context(), changes("a a1 1", "b b1 1", "a a2 2", "c c1 1")); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < 500*time.Millisecond || took > time.Second {
				t.Errorf("three pauses took %v, want about 100 + 200 + 400 ms", took)
			}
			if diff := cmp.Diff(map[string][]string{"a": {"a1", "a2"}, "b": {"b1"}, "c": {"c1"}}, b.got); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
			if sum.Resent != 2 || !sum.First || sum.Accepted != 4 {
				t.Errorf("summary %+v, want a2 sent again twice, as c goes ahead in between, and 4 accepted", sum)
			}
			want := []string{"1 2 " + failure.Reason, "2 2 " + failure.Reason, "3 2 " + failure.Reason}
			if diff := cmp.Diff(want, rounds); diff != "" {
				t.Errorf("rounds (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALongOutageIsHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		r := newRelay(t, publisherFunc(func([]relay.Group) error {
			attempts++
			return &relay.PublishError{Keys: []relay.KeyError{{Err: errBusy}}}
		}), nil)
		began := time.Now()
		err := r.Handle(t.Context(), changes("a a1 1"))
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("gave up after %v, want the patience of 30 s", took)
		}
		batch, ok := errors.AsType[*relay.BatchError](err)
		if !ok || batch.Class() != relay.Outage {
			t.Fatalf("error %v, want an outage", err)
		}
		if attempts < 8 || attempts > 15 {
			t.Errorf("%d attempts in 30 s, want pauses that grow to 5 s", attempts)
		}
	})
}

func TestTheBrokersWaitIsRespected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{fail: map[string]relay.KeyError{"a": {Err: errThrottled}}}
		r := newRelay(t, b, &relay.Options{Hooks: relay.Hooks{Retrying: func(context.Context, relay.Retry) { b.fail = nil }}})
		began := time.Now()
		if err := r.Handle(t.Context(), changes("a a1 1")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 5*time.Second {
			t.Errorf("tried again after %v, the broker asked for 7 s", took)
		}
	})
}

func TestAnOutageEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		b := &broker{fail: map[string]relay.KeyError{"a": {Err: errBusy}}}
		began := time.Now()
		err := newRelay(t, b, nil).Handle(ctx, changes("a a1 1"))
		if took := time.Since(began); err == nil || took != 3*time.Second {
			t.Errorf("returned %v after %v, want the failure when the context ends", err, took)
		}
	})
}

func TestARefusalDoesNotWait(t *testing.T) {
	b := &broker{fail: map[string]relay.KeyError{"a": {Err: errTooLarge}}}
	err := newRelay(t, b, nil).Handle(t.Context(), changes("a a1 1", "b b1 1", "a a2 2"))
	batch, ok := errors.AsType[*relay.BatchError](err)
	if !ok || batch.Class() != relay.Refused || len(batch.Failures) != 2 || batch.Failures[0].Held || !batch.Failures[1].Held {
		t.Fatalf("error %v, want a1 refused and a2 held", err)
	}
}

// poisoned fails one key in a way that could be the broker's fault, and stops the call
// as a publisher does; other keys pass unless the broker is away.
type poisoned struct {
	broker
	bad  string
	away bool
}

func (p *poisoned) Publish(ctx context.Context, groups []relay.Group) error {
	p.fail = nil
	for i, g := range groups {
		if g.Key == p.bad || p.away {
			p.fail = map[string]relay.KeyError{g.Key: {Err: errCutOff}}
			for _, rest := range groups[i+1:] {
				p.fail[rest.Key] = relay.KeyError{Untried: true, Err: errCutOff}
			}
			break
		}
	}
	return p.broker.Publish(ctx, groups)
}

func TestAKeyThatAlwaysFailsWhileOthersPassIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &poisoned{bad: "a"}
		r := newRelay(t, b, &relay.Options{SuspectAfter: 3, Patience: 10 * time.Second})
		var err error
		for n := range 20 {
			err = r.Handle(t.Context(), changes(fmt.Sprintf("z z%d %d", n, n+1), "a a1 1", fmt.Sprintf("b b%d %d", n, n+1)))
			if batch, ok := errors.AsType[*relay.BatchError](err); ok && batch.Class() == relay.Refused {
				if n < 2 || n > 5 {
					t.Errorf("refused in page %d, want after 3 failures with others passing", n)
				}
				if len(b.got["b"]) != n+1 {
					t.Errorf("%d events of the key behind it passed, want all", len(b.got["b"]))
				}
				return
			}
		}
		t.Fatalf("never refused, last %v", err)
	})
}

func TestAnOutageMakesNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &poisoned{away: true}
		r := newRelay(t, b, &relay.Options{SuspectAfter: 1, Patience: 5 * time.Second})
		for range 50 {
			err := r.Handle(t.Context(), changes("a a1 1", "b b1 1"))
			if batch, ok := errors.AsType[*relay.BatchError](err); !ok || batch.Class() != relay.Outage {
				t.Fatalf("error %v, want an outage", err)
			}
		}
		b.away = false
		if err := r.Handle(t.Context(), changes("a a1 1", "b b1 1")); err != nil {
			t.Fatal(err)
		}
	})
}
