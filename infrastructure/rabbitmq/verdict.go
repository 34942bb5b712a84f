package rabbitmq

import (
	"context"
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
)

// verdict is a line of the table: how a failure is reported, and whether it may be the
// message's fault as well as that of the broker or the way to it.
type verdict struct {
	class  relay.Class
	reason string
	doubt  bool
}

const certain, unsure = false, true

// The verdicts for what becomes of one message.
var (
	refusedByQueue = verdict{relay.Outage, "nacked", unsure}          // a queue is full, has no majority, or failed
	returned       = verdict{relay.Blocked, "no_queue", certain}      // nothing is bound for it
	blocked        = verdict{relay.Blocked, "broker_full", certain}   // its memory or disk
	timedOut       = verdict{relay.Outage, "send_timeout", certain}   // no confirmation came
	lost           = verdict{relay.Outage, "connection_lost", unsure} // with or without the message
	unreachable    = verdict{relay.Outage, "unreachable", certain}
)

// byCode gives the verdict for the end of a channel or connection, by the broker's reply code.
// One that may be due to a message counts for the message only if it was alone on its channel.
var byCode = map[int]verdict{
	amqp.AccessRefused:      {relay.Blocked, "access_refused", certain},
	amqp.NotFound:           {relay.Blocked, "exchange_not_found", certain},
	amqp.NotAllowed:         {relay.Blocked, "not_allowed", certain},
	amqp.ResourceLocked:     {relay.Blocked, "resource_locked", certain},
	amqp.PreconditionFailed: {relay.Refused, "refused", unsure}, // among others: larger than the broker takes
	amqp.ContentTooLarge:    {relay.Refused, "too_large", unsure},
	amqp.SyntaxError:        {relay.Refused, "malformed", unsure},
	amqp.FrameError:         lost, // the client's word for a failed write
	amqp.ConnectionForced:   lost,
	amqp.InternalError:      {relay.Outage, "server_error", unsure},
	amqp.ResourceError:      {relay.Outage, "server_busy", certain},
}

func (v verdict) of(err error) *relay.Error {
	return &relay.Error{Class: v.class, Reason: v.reason, Ambiguous: v.doubt, Err: err}
}

// unopened turns a failure to get a channel into what the relay decides by.
func unopened(ctx context.Context, err error) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	if said, ok := errors.AsType[*amqp.Error](err); ok {
		if v, known := byCode[said.Code]; known && v.class == relay.Blocked {
			return v.of(err)
		}
	}
	return unreachable.of(err)
}

// broken turns the end of a channel with so many unconfirmed messages into what the relay
// decides by.
func broken(end *amqp.Error, unconfirmed int) error {
	if end == nil {
		return lost.of(amqp.ErrClosed)
	}
	v, known := byCode[end.Code]
	if !known || v.class == relay.Refused && unconfirmed > 1 {
		v = lost
	}
	return v.of(end)
}
