package operations

import (
	"context"
	"math"
	"time"
)

// readMetrics scrapes all processes and adds a point to the history.
func (r *Reader) readMetrics(ctx context.Context) {
	t, err := scrape(ctx, r.client, r.metrics)
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.overview
	before := p.metrics
	p.MetricsErr = errorText(err)
	for i := range p.rates {
		p.rates[i] = math.NaN()
	}
	p.metrics = t
	seconds := t.at.Sub(before.at).Seconds()
	same := before.answered == t.answered && t.answered > 0 && seconds > 0
	per := func(now, then float64) float64 {
		if !same || now < then { // a process has restarted, so its counters started from zero
			return math.NaN()
		}
		return (now - then) / seconds
	}
	behind, oldest := t.totalLag()
	if len(t.lag) == 0 { // use the lag measured on the feed
		behind, oldest = float64(p.Snapshot.Behind), p.Snapshot.Oldest
	}
	p.rates[seriesAccepted] = per(t.accepted, before.accepted)
	p.rates[seriesBatches] = per(t.batches, before.batches)
	p.rates[seriesBehind], p.rates[seriesOldest] = behind, oldest.Seconds()
	p.rates[seriesParked] = float64(len(p.Gates))
	if t.hasAPI {
		p.rates[seriesCommitted] = per(t.changes, before.changes)
	} else if wasBehind, _ := before.totalLag(); same && len(t.lag) > 0 {
		p.rates[seriesCommitted] = max(0, p.rates[seriesAccepted]+(behind-wasBehind)/seconds)
	}
	if n := t.batches - before.batches; same && n > 0 {
		p.sendTook = time.Duration((t.sending - before.sending) / n * float64(time.Second))
	}
	if n := t.delivery.events - before.delivery.events; same && n > 0 {
		p.delivery = time.Duration((t.delivery.seconds - before.delivery.seconds) / n * float64(time.Second))
	}
	if len(r.metrics) > 0 || !p.RangesAt.IsZero() {
		r.history.add(t.at, p.rates)
	}
}

// totalLag returns the transactions behind of all ranges, and the greatest age.
func (m *metricsSum) totalLag() (behind float64, oldest time.Duration) {
	for _, r := range m.lag {
		behind += float64(r.transactions)
		oldest = max(oldest, r.oldest)
	}
	return behind, oldest
}
