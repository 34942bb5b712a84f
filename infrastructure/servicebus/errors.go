package servicebus

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
	"feedbox/infrastructure/internal/sending"
	"feedbox/infrastructure/internal/sharing"
	"feedbox/infrastructure/servicebus/internal/wire"
)

type verdicts map[amqp.ErrCond]verdict

type verdict = sending.Verdict

const certain, unsure = sending.Certain, sending.Unsure

// byCondition gives the verdict for what the broker said: the condition of an AMQP error,
// or the outcome of a delivery that has none.
var byCondition = verdicts{
	"com.microsoft:server-busy":         sending.As(relay.Outage, "server_busy", certain),
	"com.microsoft:timeout":             sending.As(relay.Outage, "server_timeout", certain),
	"com.microsoft:operation-cancelled": sending.As(relay.Outage, "operation_cancelled", certain),
	amqp.ErrCondInternalError:           sending.As(relay.Outage, "server_error", unsure),
	amqp.ErrCondConnectionForced:        sending.As(relay.Outage, "connection_lost", unsure),
	amqp.ErrCondDetachForced:            sending.As(relay.Outage, "link_detached", certain),
	amqp.ErrCondTransferLimitExceeded:   sending.As(relay.Outage, "no_credit", certain),
	amqp.ErrCondUnauthorizedAccess:      sending.As(relay.Outage, "unauthorized", certain),
	"released":                          sending.As(relay.Outage, "released", unsure),
	"modified":                          sending.As(relay.Outage, "modified", unsure),
	"no outcome":                        sending.As(relay.Outage, "no_outcome", unsure),

	amqp.ErrCondNotFound:              sending.As(relay.Blocked, "entity_not_found", certain),
	amqp.ErrCondResourceDeleted:       sending.As(relay.Blocked, "entity_not_found", certain),
	"com.microsoft:entity-disabled":   sending.As(relay.Blocked, "entity_disabled", certain),
	amqp.ErrCondResourceLimitExceeded: sending.As(relay.Blocked, "entity_full", certain),

	amqp.ErrCondMessageSizeExceeded:       sending.As(relay.Refused, "too_large", certain),
	amqp.ErrCondNotAllowed:                sending.As(relay.Refused, "not_allowed", unsure),
	amqp.ErrCondDecodeError:               sending.As(relay.Refused, "malformed", unsure),
	amqp.ErrCondInvalidField:              sending.As(relay.Refused, "malformed", unsure),
	amqp.ErrCondNotImplemented:            sending.As(relay.Refused, "malformed", unsure),
	amqp.ErrCondPreconditionFailed:        sending.As(relay.Refused, "malformed", unsure),
	"com.microsoft:argument-error":        sending.As(relay.Refused, "malformed", unsure),
	"com.microsoft:argument-out-of-range": sending.As(relay.Refused, "malformed", unsure),
	"rejected":                            sending.As(relay.Refused, "rejected", unsure), // without a reason
}

// The verdicts for what the broker has no word for. What nobody knows is an outage: it
// costs time, never an event.
var (
	unknown        = sending.As(relay.Outage, "unknown", unsure)
	timedOut       = sending.As(relay.Outage, "send_timeout", certain)
	connectionLost = sending.As(relay.Outage, "connection_lost", unsure)
	credential     = sending.As(relay.Outage, "credential", certain)
	closed         = sending.As(relay.Outage, "client_closed", certain)
	linkRefused    = sending.As(relay.Blocked, "link_refused", certain)
)

// classify turns the failure of a send, or of opening the link, into what the relay
// decides by. ctx is the context of the Publish call, attempt that of the one try.
func classify(ctx, attempt context.Context, err error) error {
	if ctx.Err() != nil {
		return relay.Ended(ctx)
	}
	return verdictOn(attempt, err).Of(err)
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
	case errors.Is(err, sharing.ErrClosed):
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
	return hasEnded(err) && !notAttached && relay.ClassOf(err) == relay.Outage && relay.ReasonOf(err) != timedOut.Reason
}

// unheard returns v, or the verdict in its place if v is a refusal that is no answer to a
// message: of a link that was not attached the broker has seen none, and with a session or
// connection many others end too. A link that ended while it was in use may have ended
// because of one.
func unheard(err error, v verdict) verdict {
	_, notAttached := errors.AsType[*attachError](err)
	switch {
	case v.Class != relay.Refused || !v.Doubt:
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
