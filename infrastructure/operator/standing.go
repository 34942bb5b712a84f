package operator

import (
	"context"
	"errors"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// Standing is how the ranges stand at a time.
type Standing struct {
	At     time.Time
	Ranges []Range // in the order of their keys
	// Behind is the sum over all ranges whose lag is known, Oldest their greatest age.
	Behind int64
	Oldest time.Duration
	// Level is how close the oldest is to its expiry.
	Level relay.Level
}

// Range is a lease and how far it is behind.
type Range struct {
	changefeed.Lease
	Lag    changefeed.RangeLag
	Silent time.Duration // as Silence
}

// Measure reads leases and lag. It costs a read of the change feed per range. Records that
// are no leases are left out.
func (o *Operator) Measure(ctx context.Context) (Standing, error) {
	lags, err := o.Leases.Lag(ctx)
	if err != nil {
		return Standing{}, err
	}
	leases, err := o.Leases.Leases(ctx)
	if _, refused := errors.AsType[*changefeed.RefusedError](err); err != nil && !refused {
		return Standing{}, err
	}
	byID := make(map[string]changefeed.Lease, len(leases))
	for _, l := range leases {
		byID[l.ID] = l
	}
	s := Standing{At: time.Now().UTC()}
	for _, lag := range lags {
		l := byID[lag.ID]
		s.Ranges = append(s.Ranges, Range{Lease: l, Lag: lag, Silent: o.Silence(l, s.At)})
		s.Behind += lag.Transactions
		s.Oldest = max(s.Oldest, lag.Age)
	}
	s.Level = o.Level(s.Oldest)
	return s, nil
}

// Handled is the time before which all changes were handled, by the store's clock; zero if
// that is not known of every range.
func (s Standing) Handled() time.Time {
	for _, r := range s.Ranges {
		if !r.Lag.Known {
			return time.Time{}
		}
	}
	return s.At.Add(-s.Oldest)
}

// Level is how close events of an age are to their expiry.
func (o *Operator) Level(oldest time.Duration) relay.Level {
	return relay.LevelOf(oldest, o.cfg.EventTTL)
}

// EventTTL is how long events live.
func (o *Operator) EventTTL() time.Duration { return o.cfg.EventTTL }
