package monitor

import (
	"context"
	"log/slog"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// Retention reports the lag of every range this relay owns, which is its
// heartbeat in the logs, and warns when what has not been sent grows old against
// the lifetime of events: an event that expires before it is sent is lost. The
// deployment's alerts read these messages.
type Retention struct {
	TTL   time.Duration // of events
	Every time.Duration
	Lag   func() []changefeed.RangeLag
	Log   *slog.Logger
}

// Run reports until ctx ends.
func (r Retention) Run(ctx context.Context) error { return repeat(ctx, r.Every, r.report) }

// repeat does something again and again until ctx ends, which is no error.
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
		r.Log.InfoContext(ctx, "relay.lag", "lease", changefeed.LeaseName(l.ID), "lag", l.Transactions, "oldest_age_s", l.Age.Seconds())
		if level, urgent := levels[relay.LevelOf(l.Age, r.TTL)]; urgent {
			r.Log.Log(ctx, level, "unsent events grow old and will expire", "lease", changefeed.LeaseName(l.ID), "age", l.Age, "event_ttl", r.TTL)
		}
	}
}

// AbsenceLog reports a range that nobody read for longer than events live. Which events
// have expired meanwhile is not known where an aggregate's events are gone from their first
// on; that some may have is.
func AbsenceLog(ttl time.Duration, now func() time.Time, log *slog.Logger) *changefeed.Observer {
	ctx := context.Background() //nolint:forbidigo // slog wants one, the processor's hooks have none
	return &changefeed.Observer{LeaseAcquired: func(e changefeed.LeaseAcquired) {
		if away := now().Sub(e.Written); ttl > 0 && e.Continuation != "" && !e.Written.IsZero() && away > ttl {
			log.ErrorContext(ctx, "nobody read this range for longer than events live: events may have expired before they were sent",
				"lease", changefeed.LeaseName(e.Lease), "absence", away.Round(time.Second), "event_ttl", ttl)
		}
	}}
}
