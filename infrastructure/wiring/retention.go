package wiring

import (
	"context"
	"log/slog"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// retentionGuard reports the lag of every range this relay owns, which is its
// heartbeat in the logs, and warns when what has not been sent grows old against
// the lifetime of events: an event that expires before it is sent is lost. The
// deployment's alerts read these messages.
type retentionGuard struct {
	judge relay.Retention
	every time.Duration
	lag   func() []changefeed.RangeLag
	log   *slog.Logger
}

// Run looks until ctx ends.
func (r retentionGuard) Run(ctx context.Context) error {
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.look(ctx)
		}
	}
}

func (r retentionGuard) look(ctx context.Context) {
	levels := map[relay.Level]slog.Level{relay.Warning: slog.LevelWarn, relay.Critical: slog.LevelError}
	for _, l := range r.lag() {
		r.log.InfoContext(ctx, "relay.lag", "lease", l.Lease, "lag", l.Transactions, "oldest_age_s", l.Age.Seconds())
		if level, urgent := levels[r.judge.Level(l.Age)]; urgent {
			r.log.Log(ctx, level, "unsent events grow old and will expire", "lease", l.Lease, "age", l.Age, "event_ttl", r.judge.TTL)
		}
	}
}

// reportAbsence adds to o the report of a range that nobody read for longer than
// events live. Which events have expired meanwhile is not known where a contact's
// events are gone from their first on; that some may have is.
func reportAbsence(ttl time.Duration, now func() time.Time, log *slog.Logger, o *changefeed.Observer) *changefeed.Observer {
	ctx := context.Background() //nolint:forbidigo // slog wants one, the processor's hooks have none
	next := o.LeaseAcquired
	o.LeaseAcquired = func(e changefeed.LeaseAcquired) {
		if away := now().Sub(e.Written); ttl > 0 && e.Continuation != "" && !e.Written.IsZero() && away > ttl {
			log.ErrorContext(ctx, "nobody read this range for longer than events live: events may have expired before they were sent",
				"lease", e.Lease, "absence", away.Round(time.Second), "event_ttl", ttl)
		}
		next(e)
	}
	return o
}
