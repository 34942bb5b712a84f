package subscriber

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// The lock is renewed after half of its term, within these bounds: they hold if the
// clock here is off, since the broker tells the end of the lock by its own.
const renewSoonest, renewLatest = 500 * time.Millisecond, 10 * time.Second

// renewal keeps a lock that is held for longer than half of its term; of one that is not
// it costs a timer.
type renewal struct {
	term  time.Duration // how long the broker locks at a time
	renew func(ctx context.Context) error
	lost  context.CancelCauseFunc // called if the lock is lost, or was not renewed within its term
	log   *slog.Logger
	of    string // what is locked, for the log

	timer *time.Timer
	ended chan struct{} // closed when keep has returned
	stop  context.CancelFunc
}

// start begins a renewal. It ends with ctx, and with end, which waits for it.
func (r *renewal) start(ctx context.Context) {
	began := time.Now()
	r.ended = make(chan struct{})
	ctx, r.stop = context.WithCancel(ctx)
	r.timer = time.AfterFunc(renewalPause(r.term), func() {
		defer close(r.ended)
		r.keep(ctx, began)
	})
}

func (r *renewal) end() {
	r.stop()
	if !r.timer.Stop() {
		<-r.ended
	}
}

func (r *renewal) keep(ctx context.Context, renewed time.Time) {
	for ctx.Err() == nil {
		err := r.renew(ctx)
		pause := renewalPause(r.term)
		switch {
		case err == nil:
			renewed = time.Now()
		case ctx.Err() != nil:
			return
		case errors.Is(err, consumer.ErrLockLost):
			r.lost(fmt.Errorf("%w: %w", consumer.ErrLockLost, err))
			return
		case time.Since(renewed) >= max(r.term, renewSoonest):
			r.lost(fmt.Errorf("%w: not renewed in its term: %w", consumer.ErrLockLost, err))
			return
		default:
			r.log.WarnContext(ctx, "a lock was not renewed", "of", r.of, "error", err)
			pause = max(pause/4, renewSoonest)
		}
		handling.Wait(ctx, ctx, pause)
	}
}

func renewalPause(term time.Duration) time.Duration {
	return min(max(term/2, renewSoonest), renewLatest)
}
