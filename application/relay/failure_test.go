package relay_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
)

// A failure that nobody knows costs time, never an event: it is waited out, and
// reported as an outage if it lasts.
func TestAnUnknownFailureIsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		r := newRelay(t, publisherFunc(func([]relay.Group) error {
			calls++
			return errors.New("something else")
		}), &relay.Options{Patience: time.Minute})
		err := r.Handle(t.Context(), changes("a a1 1", "b b1 1"))
		batch, ok := errors.AsType[*relay.BatchError](err)
		if !ok || batch.Class() != relay.Outage || len(batch.Failures) != 2 {
			t.Errorf("error %v, want both events to wait for the end of an outage", err)
		}
		if calls < 5 {
			t.Errorf("tried %d times in a minute", calls)
		}
	})
}

// A refused message is named at once, and sent once: sending it again unchanged cannot
// succeed.
func TestARefusedMessageIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, began := 0, time.Now()
		r := newRelay(t, publisherFunc(func([]relay.Group) error {
			calls++
			return &relay.PublishError{Keys: []relay.KeyError{{Err: errTooLarge}}}
		}), nil)
		err := r.Handle(t.Context(), changes("a a1 1", "a a2 2"))
		batch, ok := errors.AsType[*relay.BatchError](err)
		if !ok || batch.Class() != relay.Refused || len(batch.Failures) != 2 {
			t.Errorf("error %v, want a1 refused and a2 held", err)
		}
		if took := time.Since(began); calls != 1 || took > 0 {
			t.Errorf("sent %d times in %v, want once, at once", calls, took)
		}
	})
}
