package subscriber

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/consumer"
)

// requestTimeout bounds a settlement, a request and the detaching of a link.
const requestTimeout = 10 * time.Second

// settle settles a delivery by the error in out, and sets the action of out. It reports whether the broker
// confirmed the settlement before ctx ended.
func settle(ctx context.Context, r *amqp.Receiver, m *amqp.Message, out *consumer.Outcome) bool {
	var err error
	reason, dead := errors.AsType[*consumer.DeadLetterError](out.Err)
	switch {
	case out.Err == nil:
		err = r.AcceptMessage(ctx, m)
	case dead:
		out.Action = consumer.DeadLettered
		err = r.RejectMessage(ctx, m, &amqp.Error{Condition: "com.microsoft:dead-letter", Info: map[string]any{
			"DeadLetterReason": reason.Reason, "DeadLetterErrorDescription": reason.Description(),
		}})
	case errors.Is(out.Err, consumer.Defer()):
		out.Action = consumer.Deferred
		err = r.ModifyMessage(ctx, m, &amqp.ModifyMessageOptions{UndeliverableHere: true})
	default:
		out.Action = consumer.Abandoned
		err = r.ModifyMessage(ctx, m, nil)
	}
	if err != nil {
		out.Action, out.Err = consumer.Unsettled, errors.Join(out.Err, err)
	}
	return err == nil
}

// bounded returns a context for a settlement, which ends requestTimeout from now even if ctx has ended.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
}
