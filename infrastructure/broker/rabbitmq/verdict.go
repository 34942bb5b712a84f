package rabbitmq

import (
	"context"
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
)

type verdict = publish.Verdict

const certain, unsure = publish.Certain, publish.Unsure

// The verdicts for what becomes of one message.
var (
	refusedByQueue = publish.As(relay.Outage, "nacked", unsure)          // a queue is full, has no majority, or failed
	returned       = publish.As(relay.Blocked, "no_queue", certain)      // nothing is bound for it
	blocked        = publish.As(relay.Blocked, "broker_full", certain)   // its memory or disk
	timedOut       = publish.As(relay.Outage, "send_timeout", certain)   // no confirmation came
	lost           = publish.As(relay.Outage, "connection_lost", unsure) // with or without the message
	unreachable    = publish.As(relay.Outage, "unreachable", certain)
)

// byCode gives the verdict for the end of a channel or connection, by the broker's reply code.
// One that may be due to a message counts for the message only if it was alone on its channel.
var byCode = map[int]verdict{
	amqp.AccessRefused:      publish.As(relay.Blocked, "access_refused", certain),
	amqp.NotFound:           publish.As(relay.Blocked, "exchange_not_found", certain),
	amqp.NotAllowed:         publish.As(relay.Blocked, "not_allowed", certain),
	amqp.ResourceLocked:     publish.As(relay.Blocked, "resource_locked", certain),
	amqp.PreconditionFailed: publish.As(relay.Refused, "refused", unsure), // among others: larger than the broker takes
	amqp.ContentTooLarge:    publish.As(relay.Refused, "too_large", unsure),
	amqp.SyntaxError:        publish.As(relay.Refused, "malformed", unsure),
	amqp.FrameError:         lost, // the client's word for a failed write
	amqp.ConnectionForced:   lost,
	amqp.InternalError:      publish.As(relay.Outage, "server_error", unsure),
	amqp.ResourceError:      publish.As(relay.Outage, "server_busy", certain),
}

// unopened turns a failure to get a channel into what the relay decides by.
func unopened(ctx context.Context, err error) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	if said, ok := errors.AsType[*amqp.Error](err); ok {
		if v, known := byCode[said.Code]; known && v.Class == relay.Blocked {
			return v.Of(err)
		}
	}
	return unreachable.Of(err)
}

// broken turns the end of a channel with so many unconfirmed messages into what the relay
// decides by.
func broken(end *amqp.Error, unconfirmed int) error {
	if end == nil {
		return lost.Of(amqp.ErrClosed)
	}
	v, known := byCode[end.Code]
	if !known || v.Class == relay.Refused && unconfirmed != 1 {
		v = lost
	}
	return v.Of(end)
}
