package operator

import (
	"context"
	"errors"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// Snapshot is the state of all ranges at one time.
type Snapshot struct {
	At     time.Time
	Ranges []Range // in the order of their keys
	// Behind is the sum over all ranges whose lag is known, Oldest their greatest age.
	Behind int64
	Oldest time.Duration
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
	lags, err := o.Leases.Lag(ctx)
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
	byID := make(map[string]changefeed.Lease, len(leases))
	for _, l := range leases {
		byID[l.ID] = l
	}
	s := Snapshot{At: time.Now().UTC()}
	for _, lag := range lags {
		l := byID[lag.ID]
		s.Ranges = append(s.Ranges, Range{Lease: l, Lag: lag, Silent: o.Silence(l, s.At), Paused: paused})
		s.Behind += lag.Transactions
		s.Oldest = max(s.Oldest, lag.Age)
	}
	s.Level = o.Level(s.Oldest)
	return s, nil
}

// Handled returns the time before which all changes were handled, by the store's clock; zero if
// the lag of a range is unknown.
func (s Snapshot) Handled() time.Time {
	for _, r := range s.Ranges {
		if !r.Lag.Known {
			return time.Time{}
		}
	}
	return s.At.Add(-s.Oldest)
}

// Level returns how close events of an age are to their expiry.
func (o *Operator) Level(oldest time.Duration) relay.Level {
	return relay.LevelOf(oldest, o.cfg.EventTTL)
}

// EventTTL returns the TTL of events.
func (o *Operator) EventTTL() time.Duration { return o.cfg.EventTTL }
