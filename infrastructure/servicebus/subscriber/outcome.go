package subscriber

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/Azure/go-amqp"
)

// Outcome is what became of a delivery.
type Outcome struct {
	Event   *Event
	Verdict Verdict // of the inbox
	Action  Action
	Missing int64 // for a gap: how many events are missing before this one
	Err     error // of the handler, the inbox or the settlement
}

// Action is how a delivery ended.
type Action uint8

const (
	// Handled means that the handler took the event and it was completed.
	Handled Action = iota
	// Dropped means that a duplicate or stale event was completed without the handler.
	Dropped
	// PutBack means that the event will be delivered again.
	PutBack
	// DeadLettered means that the event was moved to the dead-letter queue.
	DeadLettered
	// Deferred means that the event waits to be asked for by its sequence number.
	Deferred
	// Unsettled means that the broker did not confirm the settlement; the event may come again.
	Unsettled
)

// String returns the action as it appears in logs and metrics.
func (a Action) String() string {
	switch a {
	case Handled:
		return "handled"
	case Dropped:
		return "dropped"
	case PutBack:
		return "put_back"
	case DeadLettered:
		return "dead_lettered"
	case Deferred:
		return "deferred"
	case Unsettled:
		return "unsettled"
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}

// requestTimeout bounds a settlement, a request and the closing of a link.
const requestTimeout = 10 * time.Second

// handle calls the handler; a panic becomes an error.
func (c *common) handle(ctx context.Context, e *Event) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r}
		}
	}()
	return c.handler(ctx, e)
}

// settle tells the broker how a delivery ended, waits for it to confirm that, and reports
// whether it did before ctx ended.
func settle(ctx context.Context, r *amqp.Receiver, m *amqp.Message, out *Outcome) bool {
	var err error
	letter, dead := errors.AsType[*DeadLetterError](out.Err)
	switch {
	case out.Err == nil:
		err = r.AcceptMessage(ctx, m)
	case dead:
		out.Action = DeadLettered
		err = r.RejectMessage(ctx, m, &amqp.Error{Condition: "com.microsoft:dead-letter", Info: map[string]any{
			"DeadLetterReason": letter.Reason, "DeadLetterErrorDescription": letter.description(),
		}})
	case errors.Is(out.Err, errDeferred):
		out.Action = Deferred
		err = r.ModifyMessage(ctx, m, &amqp.ModifyMessageOptions{UndeliverableHere: true})
	default:
		out.Action = PutBack
		err = r.ModifyMessage(ctx, m, nil)
	}
	if err != nil {
		out.Action, out.Err = Unsettled, errors.Join(out.Err, err)
	}
	return err == nil
}

// bounded is a context for a settlement: it outlives ctx by requestTimeout at most.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
}

// setAside reports whether an error of a handler ends its event.
func setAside(err error) bool {
	_, dead := errors.AsType[*DeadLetterError](err)
	return dead || errors.Is(err, errDeferred)
}

// backoff is the pause after the n-th failure in a row, from 1, with some jitter.
func (c *common) backoff(n int) time.Duration {
	d := c.retryDelay
	for ; n > 1 && d < c.retryDelayMax; n-- {
		d *= 2
	}
	return time.Duration(float64(min(d, c.retryDelayMax)) * (0.8 + 0.4*rand.Float64()))
}

// wait returns after d or when one of the contexts ends.
func wait(ctx, other context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-other.Done():
	}
}

// drain waits for work that ends soon after ctx has ended; after the drain's time it ends
// the context of the handlers.
func (c *common) drain(ctx context.Context, done <-chan struct{}, cancel context.CancelCauseFunc) {
	<-ctx.Done()
	timer := time.NewTimer(c.drainTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel(ErrDrainTimeout)
		<-done
	case <-done:
	}
}
