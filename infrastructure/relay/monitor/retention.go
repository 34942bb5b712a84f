package monitor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// Retention logs the lag of every range that this relay owns, as a heartbeat, and warns when
// unsent events approach their TTL, because an event that expires before it is sent is lost.
// The alerts of the deployment match these messages.
type Retention struct {
	TTL   time.Duration // of events
	Every time.Duration
	Lag   func() []changefeed.RangeLag
	Log   *slog.Logger
}

// Run reports until ctx ends.
func (r Retention) Run(ctx context.Context) error { return repeat(ctx, r.Every, r.report) }

// repeat calls do at every tick until ctx ends, then returns nil.
func repeat(ctx context.Context, every time.Duration, do func(ctx context.Context)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			do(ctx)
		}
	}
}

func (r Retention) report(ctx context.Context) {
	levels := map[relay.Level]slog.Level{relay.Warning: slog.LevelWarn, relay.Critical: slog.LevelError}
	for _, l := range r.Lag() {
		attributes := []any{"lease", changefeed.LeaseName(l.ID), "known", l.Known, "paused", l.Paused}
		if l.Known {
			attributes = append(attributes, "lag", l.Transactions, "oldest_age_s", l.Age.Seconds(), "withheld", l.Withheld)
		} else {
			attributes = append(attributes, "reason", l.Unknown)
		}
		r.Log.InfoContext(ctx, "relay.lag", attributes...)
		if level, urgent := levels[relay.LevelOf(l.Age, r.TTL)]; urgent {
			r.Log.Log(ctx, level, "unsent events grow old and will expire", "lease", changefeed.LeaseName(l.ID), "age", l.Age, "event_ttl", r.TTL)
		}
	}
}

// Absences logs and counts the ranges that were not read for longer than the event TTL, by any relay or by this one,
// as in a pause. It cannot name the expired events, because the loss of the last events of a key may leave no gap
// in the feed.
func (m *Metrics) Absences(ttl time.Duration, now func() time.Time, log *slog.Logger) *changefeed.Observer {
	ctx := context.Background() //nolint:forbidigo // slog wants one, the processor's hooks have none
	var mu sync.Mutex
	reads := map[string]time.Time{} // guarded by mu: when each owned range was last read, or acquired
	report := func(lease string, away time.Duration) {
		if ttl > 0 && away > ttl {
			m.absences.Add(ctx, 1, m.container)
			log.ErrorContext(ctx, "range not read for longer than the event TTL; events may have expired unsent",
				"lease", changefeed.LeaseName(lease), "absence", away.Round(time.Second), "event_ttl", ttl)
		}
	}
	read := func(lease string) (before, at time.Time) {
		mu.Lock()
		defer mu.Unlock()
		before, at = reads[lease], now()
		reads[lease] = at
		return before, at
	}
	forget := func(lease string) {
		mu.Lock()
		defer mu.Unlock()
		delete(reads, lease)
	}
	return &changefeed.Observer{
		LeaseAcquired: func(e changefeed.LeaseAcquired) {
			at := now()
			begun := e.Continuation != "" || e.Epoch > 1 // an operator's rewind removes the continuation
			if begun && !e.LastRead.IsZero() {
				at = e.LastRead
			}
			mu.Lock()
			defer mu.Unlock()
			reads[e.Lease] = at
		},
		PageRead: func(e changefeed.PageRead) {
			if before, at := read(e.Lease); !before.IsZero() {
				report(e.Lease, at.Sub(before))
			}
		},
		LeaseReleased: func(e changefeed.LeaseReleased) { forget(e.Lease) },
		LeaseLost:     func(e changefeed.LeaseLost) { forget(e.Lease) },
		RangeSplit:    func(e changefeed.RangeSplit) { forget(e.Lease) },
	}
}
