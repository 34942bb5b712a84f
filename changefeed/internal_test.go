package changefeed

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Jitter must not shorten the pause that a throttled store asked for.
func TestBackoffIsNeverShorterThanRetryAfter(t *testing.T) {
	b := backoff{min: time.Millisecond, max: time.Second}
	for range 200 {
		if got := b.next(&ThrottledError{RetryAfter: 10 * time.Second}); got < 10*time.Second {
			t.Fatalf("a pause of %s, the store asked for 10 s", got)
		}
	}
}

func TestBackoffGrowsIsCappedAndHeedsThrottling(t *testing.T) {
	b := backoff{min: time.Second, max: 20 * time.Second}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 20, 20} {
		want *= time.Second //nolint:durationcheck // a bare number of seconds until here
		if d := b.next(nil); d < want*8/10 || d > want*12/10 {
			t.Errorf("pause %d is %s, want about %s", i, d, want)
		}
	}
	b.reset()
	if d := b.next(&ThrottledError{RetryAfter: time.Minute}); d < time.Minute {
		t.Errorf("throttled for a minute, comes back after %s", d)
	}
}

func TestRefusedOwnCallIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls ownCalls
		if calls.begin() {
			t.Error("let in before a session begins")
		}
		waits := true
		go func() { calls.running.Wait(); waits = false }()
		if synctest.Wait(); waits {
			t.Error("a refused call is waited for")
			calls.running.Done()
		}
	})
}

// The ETag is another one although no one has changed the record: what it does not contain is lost.
func TestRecordOfAnotherTermIsNotAdopted(t *testing.T) {
	store := &funcStore{}
	_, k := keeperOf(t, store, &manualClock{now: time.Unix(100, 0)}, &Observer{})
	mine := k.snapshot()
	store.replace = func(Record) (string, error) { return "", ErrETagMismatch }
	store.read = func() (Record, error) {
		r := mine.encode()
		r.ETag, r.Term = "other", "7:2"
		return r, nil
	}
	if err := k.write(t.Context()); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("%v, want the lease to be lost", err)
	}
}
