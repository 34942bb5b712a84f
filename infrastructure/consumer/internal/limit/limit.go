// Package limit bounds the requests of an inbox. It excludes the time of handlers, which have limits of
// their own.
package limit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Default is the limit of the requests before a handler, and of those after it. It allows for a few round
// trips and a wait for the lock of another consumer. A store that needs longer does not answer.
const Default = 15 * time.Second

// ErrSilent is the error of an operation that took longer than its limit.
var ErrSilent = errors.New("the store did not answer in time")

// Limit ends a context after a time.
type Limit struct {
	ctx    context.Context //nolint:containedctx // ends with the operation
	after  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// Start returns a context that ends after the given time, or Default if it is zero. The caller must call
// End.
func Start(ctx context.Context, after time.Duration) (context.Context, *Limit) {
	l := &Limit{after: cmp.Or(after, Default)}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.timer = time.AfterFunc(l.after, func() { l.cancel(ErrSilent) })
	return l.ctx, l
}

// Suspend calls f without the limit. The limit begins again when f returns.
func (l *Limit) Suspend(f func() error) error {
	l.timer.Stop()
	defer l.timer.Reset(l.after)
	return f()
}

// End ends the context, and returns err, or ErrSilent if the context ended because of the limit. It hides
// the error of the client, which would be that of a canceled caller.
func (l *Limit) End(err error) error {
	defer l.cancel(nil)
	l.timer.Stop()
	if err != nil && errors.Is(context.Cause(l.ctx), ErrSilent) {
		return fmt.Errorf("%w: %v", ErrSilent, err) //nolint:errorlint // see above
	}
	return err
}
