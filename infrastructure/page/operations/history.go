package operations

import (
	"math"
	"time"
)

// The history has a point each 5 s, for 15 minutes.
const (
	pointEvery = 5 * time.Second
	points     = 180
	// hole is how many points may be missing between two measurements before the curve is
	// interrupted.
	hole = 6
)

// number is one of the curves.
type number uint8

const (
	numberIn number = iota
	numberAccepted
	numberBatches
	numberBehind
	numberOldest
	numberParked
	numbers
)

// history is the numbers of the last 15 minutes, a ring by time.
type history struct {
	last   int64 // the point measured last, in units of pointEvery since 1970
	values [numbers][points]float64
}

func newHistory() *history {
	h := &history{}
	for n := range h.values {
		for i := range h.values[n] {
			h.values[n][i] = math.NaN()
		}
	}
	return h
}

// note adds what was measured. Several in one point: the last one counts.
func (h *history) note(at time.Time, measured [numbers]float64) {
	point := at.Unix() / int64(pointEvery/time.Second)
	if h.last > 0 {
		for p := max(h.last+1, point-points+1); p < point; p++ {
			for n := range h.values {
				h.values[n][p%points] = math.NaN()
				if point-h.last <= hole {
					h.values[n][p%points] = measured[n]
				}
			}
		}
	}
	for n := range h.values {
		h.values[n][point%points] = measured[n]
	}
	h.last = max(h.last, point)
}

// curve is one number, the oldest point first.
func (h *history) curve(n number, now time.Time) []float64 {
	point := now.Unix() / int64(pointEvery/time.Second)
	curve := make([]float64, points)
	for i := range curve {
		p := point - points + 1 + int64(i)
		curve[i] = math.NaN()
		if p <= h.last && p > h.last-points {
			curve[i] = h.values[n][p%points]
		} else if p > h.last && h.last > 0 && p-h.last <= hole {
			curve[i] = h.values[n][h.last%points]
		}
	}
	return curve
}
