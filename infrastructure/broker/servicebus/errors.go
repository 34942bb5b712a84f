package servicebus

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
	"feedbox/infrastructure/broker/internal/shared"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
)

type verdicts map[amqp.ErrCond]verdict

type verdict = publish.Verdict

const certain, unsure = publish.Certain, publish.Unsure

// byCondition gives the verdict for what the broker said: the condition of an AMQP error,
// or the outcome of a delivery that has none.
var byCondition = verdicts{
	"com.microsoft:server-busy":         publish.As(relay.Outage, "server_busy", certain),
	"com.microsoft:timeout":             publish.As(relay.Outage, "server_timeout", certain),
	"com.microsoft:operation-cancelled": publish.As(relay.Outage, "operation_cancelled", certain),
	amqp.ErrCondInternalError:           publish.As(relay.Outage, "server_error", unsure),
	amqp.ErrCondConnectionForced:        publish.As(relay.Outage, "connection_lost", unsure),
	amqp.ErrCondDetachForced:            publish.As(relay.Outage, "link_detached", certain),
	amqp.ErrCondTransferLimitExceeded:   publish.As(relay.Outage, "no_credit", certain),
	amqp.ErrCondUnauthorizedAccess:      publish.As(relay.Outage, "unauthorized", certain),
	"released":                          publish.As(relay.Outage, "released", unsure),
	"modified":                          publish.As(relay.Outage, "modified", unsure),
	"no outcome":                        publish.As(relay.Outage, "no_outcome", unsure),

	amqp.ErrCondNotFound:              publish.As(relay.Blocked, "entity_not_found", certain),
	amqp.ErrCondResourceDeleted:       publish.As(relay.Blocked, "entity_not_found", certain),
	"com.microsoft:entity-disabled":   publish.As(relay.Blocked, "entity_disabled", certain),
	amqp.ErrCondResourceLimitExceeded: publish.As(relay.Blocked, "entity_full", certain),

	amqp.ErrCondMessageSizeExceeded:       publish.As(relay.Refused, "too_large", certain),
	amqp.ErrCondNotAllowed:                publish.As(relay.Refused, "not_allowed", unsure),
	amqp.ErrCondDecodeError:               publish.As(relay.Refused, "malformed", unsure),
	amqp.ErrCondInvalidField:              publish.As(relay.Refused, "malformed", unsure),
	amqp.ErrCondNotImplemented:            publish.As(relay.Refused, "malformed", unsure),
	amqp.ErrCondPreconditionFailed:        publish.As(relay.Refused, "malformed", unsure),
	"com.microsoft:argument-error":        publish.As(relay.Refused, "malformed", unsure),
	"com.microsoft:argument-out-of-range": publish.As(relay.Refused, "malformed", unsure),
	"rejected":                            publish.As(relay.Refused, "rejected", unsure), // without a reason
}

// The verdicts for what the broker has no word for. What nobody knows is an outage: it
// costs time, never an event.
var (
	unknown        = publish.As(relay.Outage, "unknown", unsure)
	timedOut       = publish.As(relay.Outage, "send_timeout", certain)
	connectionLost = publish.As(relay.Outage, "connection_lost", unsure)
	credential     = publish.As(relay.Outage, "credential", certain)
	closed         = publish.As(relay.Outage, "client_closed", certain)
	linkRefused    = publish.As(relay.Blocked, "link_refused", certain)
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
	case errors.Is(err, shared.ErrClosed):
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
