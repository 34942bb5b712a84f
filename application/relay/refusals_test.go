package relay_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
)

var (
	errNotAllowed = &relay.Error{Class: relay.Refused, Reason: "not_allowed", Ambiguous: true}
	notAllowed    = relay.KeyError{Err: errNotAllowed}
)

// classes handles one page per key and returns the class of each failure.
func classes(t *testing.T, r *relay.Relay, keys ...string) []relay.Class {
	t.Helper()
	var list []relay.Class
	for _, key := range keys {
		err := r.Handle(t.Context(), changes(key+" "+key+"1 1"))
		batch, ok := errors.AsType[*relay.BatchError](err)
		if !ok {
			t.Fatalf("key %s: error %v, want a refusal", key, err)
		}
		list = append(list, batch.Class())
	}
	return list
}

func wantClasses(t *testing.T, what string, got []relay.Class, want ...relay.Class) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// A broker that refuses everybody in the same words parks at most a few keys, and goes
// on by itself once it accepts.
func TestARefusalOfEverybodyIsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{fail: map[string]relay.KeyError{"a": notAllowed, "b": notAllowed, "c": notAllowed, "d": notAllowed}}
		var said []relay.Class
		mended := false
		hooks := relay.Hooks{Retrying: func(_ context.Context, x relay.Retry) {
			said = append(said, relay.ClassOf(x.Err))
			if len(said) == 4 {
				b.fail, mended = nil, true
			}
		}}
		r := newRelay(t, b, &relay.Options{Hooks: hooks})
		err := r.Handle(t.Context(), changes("a a1 1", "b b1 1", "c c1 1", "d d1 1"))
		if err != nil || !mended || b.sent != 4 {
			t.Errorf("%v, %d sent; want all sent once the broker accepts", err, b.sent)
		}
		wantClasses(t, "told", said, relay.Blocked, relay.Blocked, relay.Blocked, relay.Blocked)
	})
}

func TestOnlyTheFirstKeysOfAGeneralRefusalCountAttempts(t *testing.T) {
	b := &broker{fail: map[string]relay.KeyError{"a": notAllowed, "b": notAllowed, "c": notAllowed}}
	r := newRelay(t, b, &relay.Options{Patience: -1})
	wantClasses(t, "nothing passes", classes(t, r, "a", "b", "c", "a", "b"), relay.Refused, relay.Refused, relay.Blocked, relay.Blocked, relay.Blocked)
	if err := r.Handle(t.Context(), changes("e e1 1")); err != nil {
		t.Fatal(err)
	}
	wantClasses(t, "another key has passed", classes(t, r, "a", "b"), relay.Refused, relay.Refused)
}

// A single poison message gets its attempts, whether anything else is sent or not.
func TestOneRefusedKeyIsPoison(t *testing.T) {
	b := &broker{fail: map[string]relay.KeyError{"a": notAllowed}}
	r := newRelay(t, b, &relay.Options{Patience: -1})
	wantClasses(t, "alone", classes(t, r, "a", "a", "a", "a", "a", "a"),
		relay.Refused, relay.Refused, relay.Refused, relay.Refused, relay.Refused, relay.Refused)
}

// What passes on the same page is evidence.
func TestRefusedKeysAmongOthersThatPass(t *testing.T) {
	b := &broker{fail: map[string]relay.KeyError{"a": notAllowed, "b": notAllowed, "c": notAllowed}}
	r := newRelay(t, b, &relay.Options{Patience: -1})
	for range 3 {
		err := r.Handle(t.Context(), changes("a a1 1", "b b1 1", "c c1 1", "x x1 1"))
		batch, ok := errors.AsType[*relay.BatchError](err)
		if !ok || batch.Class() != relay.Refused || len(batch.Failures) != 3 {
			t.Fatalf("%v, want three refusals", err)
		}
	}
}

// A message that is too large is its own fault, however many there are.
func TestACertainRefusalIsNotDoubted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := relay.KeyError{Err: errTooLarge}
		b := &broker{fail: map[string]relay.KeyError{"a": large, "b": large, "c": large, "d": large}}
		began := time.Now()
		err := newRelay(t, b, nil).Handle(t.Context(), changes("a a1 1", "b b1 1", "c c1 1", "d d1 1"))
		batch, ok := errors.AsType[*relay.BatchError](err)
		if !ok || batch.Class() != relay.Refused || time.Since(began) > 0 {
			t.Errorf("%v after %v, want refusals at once", err, time.Since(began))
		}
	})
}
