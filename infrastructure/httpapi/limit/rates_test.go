package limit

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBucketsRefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewRates(10, 5)
		for range 5 {
			if wait := l.Take("a"); wait != 0 {
				t.Fatalf("waits %v within the burst", wait)
			}
		}
		if wait := l.Take("a"); wait != 100*time.Millisecond {
			t.Errorf("waits %v, want 100ms", wait)
		}
		time.Sleep(100 * time.Millisecond)
		if wait := l.Take("a"); wait != 0 {
			t.Errorf("waits %v more after the returned wait", wait)
		}
	})
}

// The buckets of inactive callers are dropped, but an empty bucket is kept.
func TestFullBucketsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewRates(1, 1)
		for i := range 3 * maxBuckets {
			if i%maxBuckets == 0 {
				time.Sleep(time.Minute)
				l.Take("spender")
			}
			l.Take(fmt.Sprint("caller ", i))
			if i%maxBuckets == maxBuckets/2 && l.Take("spender") == 0 {
				t.Error("an empty bucket was dropped")
			}
		}
		if len(l.buckets) > 2*maxBuckets {
			t.Errorf("%d buckets are kept", len(l.buckets))
		}
	})
}

// Keys of an attack that are all new do not make each of them look at all others.
func TestManySpendersAreLookedAtRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewRates(1, 1)
		for i := range 9 * maxBuckets {
			if l.Take(fmt.Sprint("spender ", i)); len(l.buckets) > l.most {
				t.Fatalf("%d buckets, and the next look is at %d", len(l.buckets), l.most)
			}
		}
		if l.most != 16*maxBuckets {
			t.Errorf("the next look is at %d buckets, want %d after four looks", l.most, 16*maxBuckets)
		}
		time.Sleep(time.Minute)
		for i := range 8 * maxBuckets {
			l.Take(fmt.Sprint("later ", i))
		}
		if len(l.buckets) > 9*maxBuckets {
			t.Errorf("%d buckets are kept after the attack", len(l.buckets))
		}
	})
}

// One caller gets half of the places, and there is always one for a caller that has none.
func TestCallerHasAsManyPlacesAsAreFree(t *testing.T) {
	p := NewPlaces(12)
	take := func(caller string) (n int) {
		for {
			entered, _ := p.Enter(caller)
			if !entered {
				return n
			}
			n++
		}
	}
	for _, one := range []struct {
		caller string
		want   int
	}{{"a", 6}, {"b", 3}, {"c", 2}, {"d", 1}} {
		if got := take(one.caller); got != one.want {
			t.Errorf("%s has %d places, want %d", one.caller, got, one.want)
		}
	}
	if entered, free := p.Enter("e"); entered || free {
		t.Error("a place beyond the limit")
	}
	for range 6 {
		p.Leave("a")
	}
	if got := take(""); got != 6 {
		t.Errorf("callers without a name have %d of 6 places", got)
	}
}

func TestSamplerCountsTheLinesLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sampler
		written := 0
		for range 1000 {
			if ok, before := s.Line(); ok {
				written++
				if before != 0 {
					t.Errorf("%d left out before the first", before)
				}
			}
		}
		time.Sleep(time.Second)
		if ok, before := s.Line(); !ok || written != maxLines || before != int64(1000-maxLines) {
			t.Errorf("%d lines, then %v with %d left out", written, ok, before)
		}
		if _, before := s.Line(); before != 0 {
			t.Error("lines are counted twice")
		}
	})
}

// A refused request spends nothing, also beside others. Otherwise a caller that sends too many at once
// would wait for those that were refused.
func TestConcurrentRefusalsSpendNothing(t *testing.T) {
	l := NewRates(0.001, 1)
	l.Take("a")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50_000 {
				l.Take("a")
			}
		})
	}
	all.Wait()
	if wait := l.Take("a"); wait > 1000*time.Second {
		t.Errorf("waits %v for one token, want at most 1000 s", wait)
	}
}
