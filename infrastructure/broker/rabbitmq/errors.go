package rabbitmq

import (
	"context"
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
)

// The rules for single messages.
var (
	refusedByQueue = publish.Rule{Class: relay.Outage, Reason: "nacked", Ambiguous: true}          // a queue is full, has no majority, or has failed
	returned       = publish.Rule{Class: relay.Blocked, Reason: "no_queue"}                        // no queue is bound for it
	blocked        = publish.Rule{Class: relay.Blocked, Reason: "broker_full"}                     // memory or disk alarm
	overtaken      = publish.Rule{Class: relay.Blocked, Reason: "broker_full", Ambiguous: true}    // the alarm was raised after the message was sent
	timedOut       = publish.Rule{Class: relay.Outage, Reason: "send_timeout"}                     // no confirmation arrived
	connectionLost = publish.Rule{Class: relay.Outage, Reason: "connection_lost", Ambiguous: true} // before or after the broker stored the message
	unreachable    = publish.Rule{Class: relay.Outage, Reason: "unreachable"}
)

// byCode contains the rules for the end of a channel or connection, by the reply code of the broker. A
// rule that refuses a message applies only if it was the only unconfirmed message of the channel.
var byCode = map[int]publish.Rule{
	amqp.AccessRefused:      {Class: relay.Blocked, Reason: "access_refused"},
	amqp.NotFound:           {Class: relay.Blocked, Reason: "exchange_not_found"},
	amqp.NotAllowed:         {Class: relay.Blocked, Reason: "not_allowed"},
	amqp.ResourceLocked:     {Class: relay.Blocked, Reason: "resource_locked"},
	amqp.PreconditionFailed: {Class: relay.Refused, Reason: "refused", Ambiguous: true}, // for example larger than the broker accepts
	amqp.ContentTooLarge:    {Class: relay.Refused, Reason: "too_large", Ambiguous: true},
	amqp.SyntaxError:        {Class: relay.Refused, Reason: "malformed", Ambiguous: true},
	amqp.FrameError:         connectionLost, // reported by the client after a failed write
	amqp.ConnectionForced:   connectionLost,
	amqp.InternalError:      {Class: relay.Outage, Reason: "server_error", Ambiguous: true},
	amqp.ResourceError:      {Class: relay.Outage, Reason: "server_busy"},
}

var errAlarm = errors.New("the broker accepts no messages: it is short of memory or disk")

// openError classifies the failure to open a channel.
func openError(ctx context.Context, err error) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	if known, ok := errors.AsType[*relay.Error](err); ok {
		return known
	}
	if end, ok := errors.AsType[*amqp.Error](err); ok {
		if rule, known := byCode[end.Code]; known && rule.Class == relay.Blocked {
			return rule.Wrap(err)
		}
	}
	return unreachable.Wrap(err)
}

// channelError classifies the end of a channel that had this number of unconfirmed messages.
func channelError(end *amqp.Error, unconfirmed int) error {
	if end == nil {
		return connectionLost.Wrap(amqp.ErrClosed)
	}
	rule, known := byCode[end.Code]
	if !known || rule.Class == relay.Refused && unconfirmed != 1 {
		rule = connectionLost // the broker does not say which message it refused
	}
	return rule.Wrap(end)
}
