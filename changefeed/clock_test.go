package changefeed

import (
	"testing"
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
