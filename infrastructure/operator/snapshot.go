package operator

import (
	"context"
	"errors"
	"slices"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// Snapshot is the state of all ranges at one time.
type Snapshot struct {
	At     time.Time // when the measurement began
	Ranges []Range   // in the order of their keys
	// Behind is the sum over all ranges whose lag is known, Oldest their greatest age. Unknown is
	// the number of the other ranges.
	Behind  int64
	Oldest  time.Duration
	Unknown int
	// Uncovered has the parts of the key space without a lease, whose events no relay reads.
	Uncovered []string
	// Level is how close the oldest is to its expiry.
	Level relay.Level
}

// Range is a lease with its lag.
type Range struct {
	changefeed.Lease
	Lag    changefeed.RangeLag
	Silent time.Duration // see Operator.Silence
	Paused bool          // all ranges are paused; Request.Paused is about this one
}

// Measure reads leases and lag. It costs one read of the change feed per range. Records that
// are no leases are omitted.
func (o *Operator) Measure(ctx context.Context) (Snapshot, error) {
	at := time.Now().UTC()
	lags, err := o.Lags(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	leases, err := o.Leases.Leases(ctx)
	if _, refused := errors.AsType[*changefeed.RefusedError](err); err != nil && !refused {
		return Snapshot{}, err
	}
	paused, err := o.Leases.Paused(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	byID := make(map[string]changefeed.RangeLag, len(lags))
	for _, lag := range lags {
		byID[lag.ID] = lag
	}
	return o.NewSnapshot(at, leases, paused, byID), nil
}

// NewSnapshot returns the snapshot of ranges whose lag was measured after a time, by the id of the
// lease. The lag of a lease that is not in lags is unknown.
func (o *Operator) NewSnapshot(at time.Time, leases []changefeed.Lease, paused bool, lags map[string]changefeed.RangeLag) Snapshot {
	s := Snapshot{At: at, Uncovered: Uncovered(leases)}
	for _, l := range leases {
		r := Range{Lease: l, Lag: lags[l.ID], Silent: o.Silence(l, time.Now()), Paused: paused}
		switch {
		case r.Lag.Known:
			s.Behind += r.Lag.Transactions
			s.Oldest = max(s.Oldest, r.Lag.Age)
		case !isPart(l, leases): // no relay reads a lease that is split, or that a first start did not complete
			s.Unknown++
		}
		s.Ranges = append(s.Ranges, r)
	}
	s.Level = o.Level(s.Oldest)
	return s
}

// isPart reports whether a pending lease is a part of one of leases, which is being split.
func isPart(l changefeed.Lease, leases []changefeed.Lease) bool {
	return l.State == changefeed.LeasePending && slices.ContainsFunc(leases, func(of changefeed.Lease) bool {
		return of.State == changefeed.LeaseSplit && of.Range.Contains(l.Range)
	})
}

// inFlightFor is how long changes after the checkpoint count as in flight. A live owner stores a checkpoint
// every second while it sends. The rest is for whole seconds of the store's clock and for clock skew.
// Without this bound a killed owner would seem to have no backlog until its lease counts as silent.
const inFlightFor = 3 * time.Second

// Lags measures the ranges; see changefeed.Operator.Lag. Changes after the checkpoint do not count if
// all are younger than the last write of the lease and inFlightFor, and its owner is live and without
// trouble, because most were accepted by then: an owner stores a checkpoint up to a second later. The
// next write of the lease shows those that were not.
func (o *Operator) Lags(ctx context.Context) ([]changefeed.RangeLag, error) {
	lags, err := o.Leases.Lag(ctx)
	for i := range lags {
		l := &lags[i]
		// The store's clock has whole seconds.
		inFlight := l.Known && l.Withheld == 0 && l.Oldest.Add(time.Second).After(l.Timestamp) && l.Age <= inFlightFor
		if inFlight && l.Owner != "" && !l.Paused && l.Health == changefeed.Healthy && o.Silence(l.Lease, time.Now()) == 0 {
			l.Transactions, l.Age = 0, 0
		}
	}
	return lags, err
}

// Handled returns the time before which all changes were handled, by the store's clock; zero if
// the lag of a range is unknown, no lease covers it, or there are no leases yet, so that nothing was handled.
func (s Snapshot) Handled() time.Time {
	handled := s.At
	for i := range s.Ranges {
		if s.Ranges[i].State == changefeed.LeaseSplit { // its children have no lag yet
			return time.Time{}
		}
	}
	if s.Unknown > 0 || len(s.Ranges) == 0 || len(s.Uncovered) > 0 {
		return time.Time{}
	}
	for i := range s.Ranges {
		r := &s.Ranges[i]
		if oldest := r.Lag.Oldest; !oldest.IsZero() && oldest.Before(handled) {
			handled = oldest
		}
		if read := s.measured(r); read.Before(handled) {
			handled = read
		}
	}
	return handled
}

// measured returns the time of the measurement of a range. The lag that a relay reports is that of its last read:
// an idle range is read every few seconds.
func (s Snapshot) measured(r *Range) time.Time {
	if read := r.Lag.Read; !read.IsZero() && read.Before(s.At) {
		return read
	}
	return s.At
}

// Level returns how close events of an age are to their expiry.
func (o *Operator) Level(oldest time.Duration) relay.Level {
	return relay.LevelOf(oldest, o.cfg.EventTTL)
}

// EventTTL returns the TTL of events.
func (o *Operator) EventTTL() time.Duration { return o.cfg.EventTTL }
