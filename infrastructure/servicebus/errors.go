package servicebus

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
)

// verdict is how a failure is reported.
type verdict struct {
	class  relay.Class
	reason string
}

// The client reports as a lost connection, and without the condition, whatever it does
// not know, a refusal of the message included (internal/errors.go, GetRecoveryKind).
const (
	reasonConnectionLost = "connection_lost"
	reasonUnknown        = "unknown"
)

// reasonTooLarge is that of a message which exceeds the limit of the link or the entity.
const reasonTooLarge = "too_large"

// byCondition gives the verdict for the AMQP condition of a broker's answer. The
// client hands most conditions on (internal/errors.go, TransformError); those that it
// takes for a lost connection come without the condition and are found by byCode.
var byCondition = map[amqp.ErrCond]verdict{
	"com.microsoft:server-busy":         {relay.Outage, "server_busy"},
	"com.microsoft:timeout":             {relay.Outage, "server_timeout"},
	"com.microsoft:operation-cancelled": {relay.Outage, "operation_cancelled"},
	amqp.ErrCondInternalError:           {relay.Outage, "server_error"},
	amqp.ErrCondConnectionForced:        {relay.Outage, reasonConnectionLost},
	amqp.ErrCondDetachForced:            {relay.Outage, "link_detached"},
	amqp.ErrCondTransferLimitExceeded:   {relay.Outage, "no_credit"},
	amqp.ErrCondUnauthorizedAccess:      {relay.Outage, "unauthorized"},

	amqp.ErrCondNotFound:              {relay.Blocked, "entity_not_found"},
	amqp.ErrCondResourceDeleted:       {relay.Blocked, "entity_not_found"},
	"com.microsoft:entity-disabled":   {relay.Blocked, "entity_disabled"},
	amqp.ErrCondResourceLimitExceeded: {relay.Blocked, "entity_full"},

	amqp.ErrCondMessageSizeExceeded:       {relay.Refused, reasonTooLarge},
	amqp.ErrCondNotAllowed:                {relay.Refused, "not_allowed"},
	amqp.ErrCondDecodeError:               {relay.Refused, "malformed"},
	amqp.ErrCondInvalidField:              {relay.Refused, "malformed"},
	amqp.ErrCondNotImplemented:            {relay.Refused, "malformed"},
	amqp.ErrCondPreconditionFailed:        {relay.Refused, "malformed"},
	"com.microsoft:argument-error":        {relay.Refused, "malformed"},
	"com.microsoft:argument-out-of-range": {relay.Refused, "malformed"},
}

// byCode gives the verdict for the codes of the client's own errors, which keep the
// AMQP condition to themselves.
var byCode = map[azservicebus.Code]verdict{
	azservicebus.CodeConnectionLost:     {relay.Outage, reasonConnectionLost},
	azservicebus.CodeTimeout:            {relay.Outage, "server_timeout"},
	azservicebus.CodeUnauthorizedAccess: {relay.Outage, "unauthorized"},
	azservicebus.CodeClosed:             {relay.Outage, "client_closed"},
	azservicebus.CodeNotFound:           {relay.Blocked, "entity_not_found"},
}

// classify turns the failure of a send into what the relay decides by. ctx is the
// context of the Publish call, attempt that of the one send.
//
// What nobody knows is an outage: it costs time, never an event. Of the refusals only
// that of the size is certain to be the message's own; the others may be meant for all.
func classify(ctx, attempt context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("send: %w", context.Cause(ctx))
	case errors.Is(err, azservicebus.ErrMessageTooLarge):
		return &relay.Error{Class: relay.Refused, Reason: reasonTooLarge, Err: err}
	case attempt.Err() != nil:
		return &relay.Error{Class: relay.Outage, Reason: "send_timeout", Err: err}
	}
	v := verdict{relay.Outage, reasonUnknown}
	var credential interface {
		error
		NonRetriable()
	}
	if answer, ok := errors.AsType[*amqp.Error](err); ok {
		if known, ok := byCondition[answer.Condition]; ok {
			v = known
		}
	} else if errors.As(err, &credential) { // azidentity's errors have this mark
		v = verdict{relay.Outage, "credential"}
	} else if coded, ok := errors.AsType[*azservicebus.Error](err); ok {
		if known, ok := byCode[coded.Code]; ok {
			v = known
		}
	}
	return &relay.Error{
		Class: v.class, Reason: v.reason, Err: err,
		Ambiguous: v.reason == reasonConnectionLost || v.reason == reasonUnknown || v.class == relay.Refused && v.reason != reasonTooLarge,
	}
}
