package servicebus

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
	"feedbox/infrastructure/servicebus/internal/wire"
)

// verdict is a line of the table: how a failure is reported, and whether it may be the
// message's fault as well as that of the broker, its set-up or the way to it.
type verdict struct {
	class  relay.Class
	reason string
	doubt  bool
}

type verdicts map[amqp.ErrCond]verdict

const certain, unsure = false, true

// byCondition gives the verdict for what the broker said: the condition of an AMQP error,
// or the outcome of a delivery that has none.
var byCondition = verdicts{
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

// The verdicts for what the broker has no word for. What nobody knows is an outage: it
// costs time, never an event.
var (
	unknown        = verdict{relay.Outage, "unknown", unsure}
	timedOut       = verdict{relay.Outage, "send_timeout", certain}
	connectionLost = verdict{relay.Outage, "connection_lost", unsure}
	credential     = verdict{relay.Outage, "credential", certain}
	closed         = verdict{relay.Outage, "client_closed", certain}
	linkRefused    = verdict{relay.Blocked, "link_refused", certain}
)

// classify turns the failure of a send, or of opening the link, into what the relay
// decides by. ctx is the context of the Publish call, attempt that of the one try.
func classify(ctx, attempt context.Context, err error) error {
	if ctx.Err() != nil {
		return relay.Ended(ctx)
	}
	v := verdictOn(attempt, err)
	return &relay.Error{Class: v.class, Reason: v.reason, Ambiguous: v.doubt, Err: err}
}

func verdictOn(attempt context.Context, err error) verdict {
	answer, answered := errors.AsType[*notAcceptedError](err)
	told, worded := errors.AsType[*amqp.Error](err)
	refusal, refused := errors.AsType[*wire.RefusedError](err)
	switch {
	case answered:
		return byCondition.of(answer.outcome.Condition)
	case attempt.Err() != nil:
		return timedOut
	case worded:
		return unheard(err, byCondition.of(told.Condition))
	case refused && refusal.Status == http.StatusUnauthorized:
		return byCondition.of(amqp.ErrCondUnauthorizedAccess)
	case refused && refusal.Status == http.StatusNotFound:
		return byCondition.of(amqp.ErrCondNotFound)
	case isCredential(err):
		return credential
	case errors.Is(err, wire.ErrClosed):
		return closed
	}
	if _, notAttached := errors.AsType[*attachError](err); notAttached || hasEnded(err) {
		return connectionLost
	}
	return unknown
}

func (t verdicts) of(condition amqp.ErrCond) verdict {
	if v, ok := t[condition]; ok {
		return v
	}
	return unknown
}

// sentInVain reports whether err, of a try that had time left, is that the link had ended,
// and for no lasting reason.
func sentInVain(err error) bool {
	_, notAttached := errors.AsType[*attachError](err)
	return hasEnded(err) && !notAttached && relay.ClassOf(err) == relay.Outage && relay.ReasonOf(err) != timedOut.reason
}

// unheard returns v, or the verdict in its place if v is a refusal that is no answer to a
// message: of a link that was not attached the broker has seen none, and with a session or
// connection many others end too. A link that ended while it was in use may have ended
// because of one.
func unheard(err error, v verdict) verdict {
	_, notAttached := errors.AsType[*attachError](err)
	switch {
	case v.class != relay.Refused || !v.doubt:
		return v
	case wire.Broken(err):
		return connectionLost
	case notAttached:
		return linkRefused
	}
	return v
}

// isCredential reports whether err is one of azidentity's, which have this mark.
func isCredential(err error) bool {
	var marked interface {
		error
		NonRetriable()
	}
	return errors.As(err, &marked)
}
