package operations

import (
	"context"
	"slices"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
)

// readRanges reads the leases, and measures the lag if the metrics do not have it.
func (r *Reader) readRanges(ctx context.Context) {
	began := time.Now()
	leases, paused, err := r.port.LeaseList(ctx)
	var hosts []changefeed.Host
	if err == nil {
		hosts, err = r.port.Hosts(ctx)
	}
	var lags map[string]changefeed.RangeLag
	var measured time.Time
	if err == nil {
		lags, measured, err = r.lags(ctx, leases)
	}
	now := time.Now().UTC()
	s := r.port.NewSnapshot(measured, leases, paused, lags)
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.overview
	p.Ranges.note(began, err)
	if err != nil {
		return
	}
	p.Moves = moves(p.Moves, p.Snapshot.Ranges, s.Ranges, now)
	p.Snapshot, p.Paused, p.Hosts = s, paused, hosts
}

// lags returns the lags by lease id, and when their measurement began. The metrics of the relays cost the store nothing, so
// they are preferred to a measurement on the feed.
func (r *Reader) lags(ctx context.Context, leases []changefeed.Lease) (lags map[string]changefeed.RangeLag, at time.Time, err error) {
	r.mu.Lock()
	fresh := r.overview.metrics
	r.mu.Unlock()
	lags = make(map[string]changefeed.RangeLag, len(leases))
	missing := time.Since(fresh.at) > 3*metricsBusy
	for _, l := range leases {
		name := changefeed.LeaseName(l.ID)
		t, ok := fresh.lag[name]
		if !ok || fresh.unknown[name] {
			missing = missing || l.State == changefeed.LeaseLive
			continue
		}
		lag := changefeed.RangeLag{Lease: l, Transactions: t.transactions, Withheld: t.withheld, Age: t.oldest, Known: true, Read: fresh.at.Add(-t.read)}
		if t.transactions > 0 {
			lag.Oldest = fresh.at.Add(-t.oldest)
		}
		lags[l.ID] = lag
	}
	if !missing {
		return lags, fresh.at.UTC(), nil
	}
	at = time.Now().UTC()
	measured, err := r.port.Lag(ctx)
	for _, lag := range measured {
		lags[lag.ID] = lag
	}
	return lags, at, err
}

// moves prepends the changes of ownership between two reads.
func moves(known []Move, before, after []operator.Range, now time.Time) []Move {
	if len(before) == 0 { // the first read, otherwise every range would be new
		return known
	}
	was := make(map[string]operator.Range, len(before))
	for _, b := range before {
		was[b.ID] = b
	}
	var fresh []Move
	for _, a := range after {
		b, ok := was[a.ID]
		if ok && b.Owner == a.Owner && b.Epoch == a.Epoch {
			continue
		}
		from := b.Owner
		if !ok {
			from = "(new range)"
		}
		fresh = append(fresh, Move{At: now, Lease: changefeed.LeaseName(a.ID), From: from, To: a.Owner, Epoch: a.Epoch})
	}
	all := slices.Concat(fresh, known)
	return all[:min(len(all), maxMoves)]
}
