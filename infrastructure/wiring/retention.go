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
