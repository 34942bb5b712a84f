package changefeed

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts durations in buckets an eighth of a power of two wide: any
// quantile is right to about 9 %. It is safe for concurrent use and takes a few
// nanoseconds to record into.
type Histogram struct {
	counts [histogramBuckets]atomic.Uint64
	sum    atomic.Uint64 // nanoseconds
}

const (
	histogramSteps   = 8
	histogramBuckets = 40 * histogramSteps // up to about 18 minutes
)

func (h *Histogram) observe(d time.Duration) {
	h.counts[bucketOf(d)].Add(1)
	h.sum.Add(uint64(max(d, 0)))
}

func bucketOf(d time.Duration) int {
	n := uint64(max(d, 1))
	exponent := bits.Len64(n) - 1
	step := 0
	if exponent >= 3 {
		step = int(n>>(exponent-3)) & (histogramSteps - 1)
	}
	return min(exponent*histogramSteps+step, histogramBuckets-1)
}

// upperBound is the longest duration bucket i holds.
func upperBound(i int) time.Duration {
	exponent, step := i/histogramSteps, i%histogramSteps
	if exponent < 3 {
		return time.Duration(1)<<(exponent+1) - 1
	}
	return time.Duration(histogramSteps+step+1)<<(exponent-3) - 1
}

// Count is how many durations were recorded.
func (h *Histogram) Count() uint64 {
	var n uint64
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}

// Sum is the total of the durations recorded.
func (h *Histogram) Sum() time.Duration { return time.Duration(h.sum.Load()) }

// Quantile is the upper bound of the bucket that holds the q-quantile, 0 if
// nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank := uint64(q * float64(n))
	var seen uint64
	for i := range h.counts {
		seen += h.counts[i].Load()
		if seen > rank {
			return upperBound(i)
		}
	}
	return upperBound(histogramBuckets - 1)
}

// Timing holds the histograms of a processor.
type Timing struct {
	Read       Histogram // one reply of the feed, decoding included
	Decode     Histogram // the part of Read spent on the body
	Handle     Histogram // one handler call
	Checkpoint Histogram // one write of a lease record
}
