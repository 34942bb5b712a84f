package changefeed

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestHistogramQuantilesAreRightToAnEighth(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Count() != 0 {
		t.Error("an empty histogram has values")
	}
	rng := rand.New(rand.NewPCG(3, 3))
	var sum time.Duration
	for range 100_000 {
		d := time.Duration(rng.Int64N(int64(time.Second)))
		sum += d
		h.observe(d)
	}
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99} {
		got, want := h.Quantile(q), time.Duration(q*float64(time.Second))
		if ratio := float64(got) / float64(want); ratio < 0.95 || ratio > 1.15 {
			t.Errorf("quantile %g is %s, want about %s", q, got, want)
		}
	}
	if h.Count() != 100_000 || h.Sum() != sum {
		t.Errorf("count %d, sum %s", h.Count(), h.Sum())
	}
	for d := time.Duration(8); d < time.Hour; d = d*9/8 + 1 {
		if b := bucketOf(d); b < histogramBuckets-1 && (upperBound(b) < d || (b > 0 && upperBound(b)*7 > d*8+16)) {
			t.Errorf("%s is in a bucket up to %s", d, upperBound(b))
		}
	}
}
