package subscriber

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/consumer"
)

// requestTimeout bounds a settlement, a request and the closing of a link.
const requestTimeout = 10 * time.Second

// settle tells the broker how a delivery ended, waits for it to confirm that, and reports
// whether it did before ctx ended.
func settle(ctx context.Context, r *amqp.Receiver, m *amqp.Message, out *consumer.Outcome) bool {
	var err error
	letter, dead := errors.AsType[*consumer.DeadLetterError](out.Err)
	switch {
	case out.Err == nil:
		err = r.AcceptMessage(ctx, m)
	case dead:
		out.Action = consumer.DeadLettered
		err = r.RejectMessage(ctx, m, &amqp.Error{Condition: "com.microsoft:dead-letter", Info: map[string]any{
			"DeadLetterReason": letter.Reason, "DeadLetterErrorDescription": letter.Description(),
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

// bounded is a context for a settlement: it outlives ctx by requestTimeout at most.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
}
