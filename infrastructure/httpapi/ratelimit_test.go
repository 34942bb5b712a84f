package httpapi

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestBucketsRefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newRateLimiter(10, 5)
		for range 5 {
			if wait := l.take("a"); wait != 0 {
				t.Fatalf("waits %v within the burst", wait)
			}
		}
		if wait := l.take("a"); wait != 100*time.Millisecond {
			t.Errorf("waits %v, want 100ms", wait)
		}
		time.Sleep(100 * time.Millisecond)
		if wait := l.take("a"); wait != 0 {
			t.Errorf("waits %v more after the returned wait", wait)
		}
	})
}

// The buckets of inactive callers are dropped, but an empty bucket is kept.
func TestFullBucketsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newRateLimiter(1, 1)
		for i := range 3 * maxBuckets {
			if i%maxBuckets == 0 {
				time.Sleep(time.Minute)
				l.take("spender")
			}
			l.take(fmt.Sprint("caller ", i))
			if i%maxBuckets == maxBuckets/2 && l.take("spender") == 0 {
				t.Error("an empty bucket was dropped")
			}
		}
		if len(l.buckets) > 2*maxBuckets {
			t.Errorf("%d buckets are kept", len(l.buckets))
		}
	})
}
