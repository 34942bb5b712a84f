package servicebus

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
)

// verdict is a line of the table: how a failure is reported, and whether it may be the
// message's fault as well as that of the broker, its set-up or the way to it.
type verdict struct {
	class  relay.Class
	reason string
	doubt  bool
}

const certain, unsure = false, true

// byCondition gives the verdict for what the broker said: the condition of an AMQP error,
// or the outcome of a delivery that has none.
var byCondition = map[amqp.ErrCond]verdict{
	"com.microsoft:server-busy":         {relay.Outage, "server_busy", certain},
	"com.microsoft:timeout":             {relay.Outage, "server_timeout", certain},
	"com.microsoft:operation-cancelled": {relay.Outage, "operation_cancelled", certain},
	amqp.ErrCondInternalError:           {relay.Outage, "server_error", unsure},
	amqp.ErrCondConnectionForced:        {relay.Outage, "connection_lost", unsure},
	amqp.ErrCondDetachForced:            {relay.Outage, "link_detached", certain},
	amqp.ErrCondTransferLimitExceeded:   {relay.Outage, "no_credit", certain},
	amqp.ErrCondUnauthorizedAccess:      {relay.Outage, "unauthorized", certain},
	"released":                          {relay.Outage, "released", unsure},
	"modified":                          {relay.Outage, "modified", unsure},
	"no outcome":                        {relay.Outage, "no_outcome", unsure},

	amqp.ErrCondNotFound:              {relay.Blocked, "entity_not_found", certain},
	amqp.ErrCondResourceDeleted:       {relay.Blocked, "entity_not_found", certain},
	"com.microsoft:entity-disabled":   {relay.Blocked, "entity_disabled", certain},
	amqp.ErrCondResourceLimitExceeded: {relay.Blocked, "entity_full", certain},

	amqp.ErrCondMessageSizeExceeded:       {relay.Refused, "too_large", certain},
	amqp.ErrCondNotAllowed:                {relay.Refused, "not_allowed", unsure},
	amqp.ErrCondDecodeError:               {relay.Refused, "malformed", unsure},
	amqp.ErrCondInvalidField:              {relay.Refused, "malformed", unsure},
	amqp.ErrCondNotImplemented:            {relay.Refused, "malformed", unsure},
	amqp.ErrCondPreconditionFailed:        {relay.Refused, "malformed", unsure},
	"com.microsoft:argument-error":        {relay.Refused, "malformed", unsure},
	"com.microsoft:argument-out-of-range": {relay.Refused, "malformed", unsure},
	"rejected":                            {relay.Refused, "rejected", unsure}, // without a reason
}

// byCode gives the verdict for the codes of the client's own errors, which keep the
// AMQP condition to themselves.
var byCode = map[azservicebus.Code]verdict{
	azservicebus.CodeConnectionLost:     {relay.Outage, "connection_lost", unsure},
	azservicebus.CodeTimeout:            {relay.Outage, "server_timeout", certain},
	azservicebus.CodeUnauthorizedAccess: {relay.Outage, "unauthorized", certain},
	azservicebus.CodeClosed:             {relay.Outage, "client_closed", certain},
	azservicebus.CodeNotFound:           {relay.Blocked, "entity_not_found", certain},
}

// The verdicts for what neither broker nor client have a word for. What nobody knows is
// an outage: it costs time, never an event.
var (
	unknown     = verdict{relay.Outage, "unknown", unsure}
	timedOut    = verdict{relay.Outage, "send_timeout", certain}
	credential  = verdict{relay.Outage, "credential", certain}
	linkRefused = verdict{relay.Blocked, "link_refused", certain}
)

// classify turns the failure of a send into what the relay decides by. ctx is the
// context of the Publish call, attempt that of the one send.
func classify(ctx, attempt context.Context, err error) error {
	if ctx.Err() != nil {
		return relay.Ended(ctx)
	}
	v := verdictOn(attempt, err)
	return &relay.Error{Class: v.class, Reason: v.reason, Ambiguous: v.doubt, Err: err}
}

func verdictOn(attempt context.Context, err error) verdict {
	v, known := unknown, false
	answer, answered := errors.AsType[*notAcceptedError](err)
	condition, worded := errors.AsType[*amqp.Error](err)
	coded, ofClient := errors.AsType[*azservicebus.Error](err)
	switch {
	case errors.Is(err, azservicebus.ErrMessageTooLarge):
		return byCondition[amqp.ErrCondMessageSizeExceeded]
	case answered:
		v, known = byCondition[answer.outcome.Condition]
	case attempt.Err() != nil:
		return timedOut
	case worded:
		if v, known = byCondition[condition.Condition]; v.doubt && v.class == relay.Refused {
			v = unheard(err, v)
		}
	case isCredential(err):
		return credential
	case ofClient:
		v, known = byCode[coded.Code]
	}
	if !known {
		return unknown
	}
	return v
}

// unheard returns the verdict for a refusal that is no answer to a message. A link that
// ended while it was in use may have ended because of one; with a session or connection
// many others end too. All else was said when a link was opened, at first or anew inside
// of a send, and the broker has seen no message on it.
func unheard(err error, v verdict) verdict {
	_, link := errors.AsType[*amqp.LinkError](err)
	_, session := errors.AsType[*amqp.SessionError](err)
	_, conn := errors.AsType[*amqp.ConnError](err)
	switch {
	case link:
		return v
	case session, conn:
		return byCode[azservicebus.CodeConnectionLost]
	}
	return linkRefused
}

// isCredential reports whether err is one of azidentity's, which have this mark.
func isCredential(err error) bool {
	var marked interface {
		error
		NonRetriable()
	}
	return errors.As(err, &marked)
}
