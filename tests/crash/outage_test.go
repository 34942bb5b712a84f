//go:build faults

package crash

import (
	"slices"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// mapKeys reads the keys of each range. Ranges are not split in these tests.
func (w *world) mapKeys() {
	w.t.Helper()
	w.keys = map[feedRange]map[string]bool{}
	for r := range w.leases.Owners(w.t.Context()) {
		w.keys[r] = w.leases.Keys(w.t.Context(), w.t, r)
	}
}

// outage is a range whose owner had a fault.
type outage struct {
	at   time.Time
	keys map[string]bool
	seen int // messages received before
}

// strike returns outages of ranges that begin now.
func (w *world) strike(ranges []feedRange) []outage {
	out := make([]outage, len(ranges))
	for i, r := range ranges {
		out[i] = outage{at: time.Now(), keys: w.keys[r], seen: w.consumer.Count()}
	}
	return out
}

// strikeAll returns outages of all ranges that begin now.
func (w *world) strikeAll() []outage {
	ranges := make([]feedRange, 0, len(w.keys))
	for r := range w.keys {
		ranges = append(ranges, r)
	}
	return w.strike(ranges)
}

// inFlight is the time after a fault in which the broker may still accept data that the victim sent
// before.
const inFlight = 100 * time.Millisecond

// over returns the time until the first event of the successor was accepted, and whether there is one.
// The broker drops repeated events, so this is the first event that the victim had not sent.
func (w *world) over(o outage) (took time.Duration, ok bool) {
	var first time.Time
	for _, a := range w.consumer.Arrivals(o.seen) {
		if o.keys[a.Session] && a.Enqueued.After(o.at.Add(inFlight)) && (first.IsZero() || a.Enqueued.Before(first)) {
			first = a.Enqueued
		}
	}
	return first.Sub(o.at), !first.IsZero()
}

// await waits until each outage is over.
func (w *world) await(outages []outage, limit time.Duration) {
	w.t.Helper()
	testkit.Eventually(w.t, limit, "events of the struck relay's ranges", func() bool {
		for _, o := range outages {
			if _, ok := w.over(o); !ok {
				return false
			}
		}
		return true
	})
}

// flowing waits until an event of each range was sent from now on and has arrived, so that the owners
// are connected.
func (w *world) flowing() {
	w.t.Helper()
	w.mapKeys()
	w.await(w.strikeAll(), patience)
}

// takeovers returns the sorted durations of the outages. It must be called at the end, because messages
// do not reach the consumer in the order in which they were accepted.
func (w *world) takeovers(outages []outage) []time.Duration {
	var took []time.Duration
	for _, o := range outages {
		if d, ok := w.over(o); ok {
			took = append(took, d)
		}
	}
	slices.Sort(took)
	return took
}

// wantTakeover records the durations of takeovers and fails the test if their p99 exceeds limit. Fewer than
// 100 have no p99: the longest of them is that of the moment in which the machine was busiest, so their median
// is judged.
func wantTakeover(t *testing.T, took []time.Duration, limit time.Duration, r *testkit.Result) {
	t.Helper()
	r.TakeoverP50, r.TakeoverP99 = quantile(took, 0.5), quantile(took, 0.99)
	if len(took) == 0 {
		t.Error("no takeover was measured")
		return
	}
	t.Logf("%d takeovers: p50 %.2f s, p99 %.2f s, longest %s", len(took), r.TakeoverP50, r.TakeoverP99, took[len(took)-1])
	judged, name := r.TakeoverP99, "p99"
	if len(took) < 100 {
		judged, name = r.TakeoverP50, "p50"
	}
	if judged > limit.Seconds() {
		t.Errorf("takeover %s %.2f s, want at most %s", name, judged, limit)
	}
}

// batchSize is FEEDBOX_RELAY_MAX_ITEMS, the maximum size of a page unless one transaction is larger.
const batchSize = 100
