package changefeed

import (
	"testing"
	"time"
)

// A throttled store is not asked again before it said so, by no chance.
func TestNoPauseIsShorterThanWhatAThrottledStoreAsks(t *testing.T) {
	b := backoff{min: time.Millisecond, max: time.Second}
	for range 200 {
		if got := b.next(&ThrottledError{RetryAfter: 10 * time.Second}); got < 10*time.Second {
			t.Fatalf("a pause of %s, the store asked for 10 s", got)
		}
	}
}
