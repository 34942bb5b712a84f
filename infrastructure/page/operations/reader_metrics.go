package operations

import (
	"context"
	"math"
	"time"
)

// readMetrics asks the processes, and notes the point of the history.
func (r *Reader) readMetrics(ctx context.Context) {
	t, err := scrape(ctx, r.client, r.metrics)
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.picture
	before := p.told
	p.MetricsErr = words(err)
	for i := range p.rates {
		p.rates[i] = math.NaN()
	}
	p.told = t
	seconds := t.at.Sub(before.at).Seconds()
	same := before.answered == t.answered && t.answered > 0 && seconds > 0
	per := func(now, then float64) float64 {
		if !same || now < then { // a process has begun anew
			return math.NaN()
		}
		return (now - then) / seconds
	}
	behind, oldest := lagTold(t)
	if len(t.lag) == 0 { // nobody told it: as the reads of the feed found
		behind, oldest = float64(p.Standing.Behind), p.Standing.Oldest
	}
	p.rates[numberAccepted] = per(t.accepted, before.accepted)
	p.rates[numberBatches] = per(t.batches, before.batches)
	p.rates[numberBehind], p.rates[numberOldest] = behind, oldest.Seconds()
	p.rates[numberParked] = float64(len(p.Gates))
	if t.hasAPI {
		p.rates[numberIn] = per(t.changes, before.changes)
	} else if wasBehind, _ := lagTold(before); same && len(t.lag) > 0 {
		p.rates[numberIn] = max(0, p.rates[numberAccepted]+(behind-wasBehind)/seconds)
	}
	if n := t.batches - before.batches; same && n > 0 {
		p.sendTook = time.Duration((t.sending - before.sending) / n * float64(time.Second))
	}
	if n := t.delivery.events - before.delivery.events; same && n > 0 {
		p.delivery = time.Duration((t.delivery.seconds - before.delivery.seconds) / n * float64(time.Second))
	}
	if len(r.metrics) > 0 || !p.RangesAt.IsZero() {
		r.history.note(t.at, p.rates)
	}
}

func lagTold(t told) (behind float64, oldest time.Duration) {
	for _, r := range t.lag {
		behind += float64(r.transactions)
		oldest = max(oldest, r.oldest)
	}
	return behind, oldest
}
