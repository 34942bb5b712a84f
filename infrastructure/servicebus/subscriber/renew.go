package subscriber

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// The lock is renewed after half of its term, within these bounds: they hold if the
// clock here is off, since the broker tells the end of the lock by its own.
const renewSoonest, renewLatest = 500 * time.Millisecond, 10 * time.Second

// renew keeps the session's lock until ctx ends. If the lock is lost, or could not be
// renewed within its term, renew calls lost. Term is how long the broker locks the
// session at a time.
func (s *Subscriber) renew(ctx context.Context, held session, term time.Duration, lost context.CancelCauseFunc) {
	renewed := time.Now()
	pause := renewalPause(term)
	for {
		if wait(ctx, pause); ctx.Err() != nil {
			return
		}
		err := held.renew(ctx)
		coded, _ := errors.AsType[*azservicebus.Error](err)
		switch {
		case err == nil:
			renewed = time.Now()
			pause = renewalPause(term)
		case ctx.Err() != nil:
			return
		case coded != nil && coded.Code == azservicebus.CodeLockLost:
			lost(fmt.Errorf("%w: %w", ErrLockLost, err))
			return
		case time.Since(renewed) >= max(term, renewSoonest):
			lost(fmt.Errorf("%w: not renewed in its term: %w", ErrLockLost, err))
			return
		default:
			s.opts.Logger.WarnContext(ctx, "a session lock was not renewed", "session", held.SessionID(), "error", err)
			pause = max(pause/2, renewSoonest)
		}
	}
}

func renewalPause(term time.Duration) time.Duration {
	return min(max(term/2, renewSoonest), renewLatest)
}
