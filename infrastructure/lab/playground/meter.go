package playground

import (
	"slices"
	"sync"
	"time"
)

// meter keeps the latencies of events, from the change to the consumer, by the second in which
// they were raised.
type meter struct {
	mu      sync.Mutex // guards seconds
	seconds [kept]second
}

const (
	kept    = 20 * 60 // seconds
	samples = 1000    // per second, to bound memory
)

type second struct {
	unix    int64
	acked   int // changes acknowledged in it
	arrived int // messages that arrived in it
	took    []time.Duration
}

// Point is one second of the curve.
type Point struct {
	At             time.Time
	Acked, Arrived int
	// P50 and P99 are latencies of the events raised in this second; 0 if there are none.
	P50, P99 time.Duration
}

// Latency is the latency of events from the change to the consumer.
type Latency struct {
	P50, P99 time.Duration
	Events   int
}

func (m *meter) at(t time.Time) *second {
	unix := t.Unix()
	s := &m.seconds[unix%kept]
	if s.unix < unix {
		*s = second{unix: unix, took: s.took[:0]}
	}
	if s.unix != unix {
		return &second{} // too old to be kept
	}
	return s
}

func (m *meter) ack(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at(now).acked++
}

func (m *meter) arrive(created, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at(now).arrived++
	if created.IsZero() {
		return
	}
	if s := m.at(created); len(s.took) < samples {
		s.took = append(s.took, max(0, now.Sub(created)))
	}
}

// latency returns the latency of the events raised from one time up to another.
func (m *meter) latency(from, to time.Time) Latency {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []time.Duration
	for unix := max(from.Unix(), to.Unix()-kept); unix <= to.Unix(); unix++ {
		if s := &m.seconds[unix%kept]; s.unix == unix {
			all = append(all, s.took...)
		}
	}
	slices.Sort(all)
	return Latency{quantile(all, 0.5), quantile(all, 0.99), len(all)}
}

// curve returns the last n complete seconds.
func (m *meter) curve(now time.Time, n int) []Point {
	m.mu.Lock()
	defer m.mu.Unlock()
	points := make([]Point, 0, n)
	for unix := now.Unix() - int64(n); unix < now.Unix(); unix++ {
		p := Point{At: time.Unix(unix, 0)}
		if s := &m.seconds[unix%kept]; s.unix == unix {
			took := slices.Sorted(slices.Values(s.took))
			p.Acked, p.Arrived, p.P50, p.P99 = s.acked, s.arrived, quantile(took, 0.5), quantile(took, 0.99)
		}
		points = append(points, p)
	}
	return points
}

// quantile returns a quantile of sorted durations; 0 if there are none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
