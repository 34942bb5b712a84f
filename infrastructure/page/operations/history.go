package operations

import (
	"math"
	"time"
)

// The history has a point every 5 s, for 15 minutes.
const (
	pointEvery = 5 * time.Second
	points     = 180
	// maxGap is the number of missing points that a curve bridges, because idle processes
	// are scraped only every 15 s.
	maxGap = 6
)

// series names one of the curves.
type series uint8

const (
	seriesCommitted series = iota
	seriesAccepted
	seriesBatches
	seriesBehind
	seriesOldest
	seriesParked
	seriesCount
)

// history holds all series of the last 15 minutes, each a ring buffer indexed by time.
type history struct {
	last   int64 // the latest point, in units of pointEvery since 1970
	values [seriesCount][points]float64
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

// add stores a measurement. The last one of a point replaces the others.
func (h *history) add(at time.Time, measured [seriesCount]float64) {
	point := at.Unix() / int64(pointEvery/time.Second)
	if h.last > 0 {
		for p := max(h.last+1, point-points+1); p < point; p++ {
			for n := range h.values {
				h.values[n][p%points] = math.NaN()
				if point-h.last <= maxGap {
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

// curve returns one series, the oldest point first.
func (h *history) curve(n series, now time.Time) []float64 {
	point := now.Unix() / int64(pointEvery/time.Second)
	curve := make([]float64, points)
	for i := range curve {
		p := point - points + 1 + int64(i)
		curve[i] = math.NaN()
		if p <= h.last && p > h.last-points {
			curve[i] = h.values[n][p%points]
		} else if p > h.last && h.last > 0 && p-h.last <= maxGap {
			curve[i] = h.values[n][h.last%points]
		}
	}
	return curve
}
