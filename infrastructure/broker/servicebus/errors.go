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

type rules map[amqp.ErrCond]publish.Rule

// byCondition contains the rules for errors of the broker, by the condition of an AMQP error or by the
// outcome of a delivery without an error.
var byCondition = rules{
	"com.microsoft:server-busy":         {Class: relay.Outage, Reason: "server_busy"},
	"com.microsoft:timeout":             {Class: relay.Outage, Reason: "server_timeout"},
	"com.microsoft:operation-cancelled": {Class: relay.Outage, Reason: "operation_cancelled"},
	amqp.ErrCondInternalError:           {Class: relay.Outage, Reason: "server_error", Ambiguous: true},
	amqp.ErrCondConnectionForced:        {Class: relay.Outage, Reason: "connection_lost", Ambiguous: true},
	amqp.ErrCondDetachForced:            {Class: relay.Outage, Reason: "link_detached"},
	amqp.ErrCondTransferLimitExceeded:   {Class: relay.Outage, Reason: "no_credit"},
	amqp.ErrCondUnauthorizedAccess:      {Class: relay.Outage, Reason: "unauthorized"},
	"released":                          {Class: relay.Outage, Reason: "released", Ambiguous: true},
	"modified":                          {Class: relay.Outage, Reason: "modified", Ambiguous: true},
	"no outcome":                        {Class: relay.Outage, Reason: "no_outcome", Ambiguous: true},

	amqp.ErrCondNotFound:              {Class: relay.Blocked, Reason: "entity_not_found"},
	amqp.ErrCondResourceDeleted:       {Class: relay.Blocked, Reason: "entity_not_found"},
	"com.microsoft:entity-disabled":   {Class: relay.Blocked, Reason: "entity_disabled"},
	amqp.ErrCondResourceLimitExceeded: {Class: relay.Blocked, Reason: "entity_full"},

	amqp.ErrCondMessageSizeExceeded:       {Class: relay.Refused, Reason: "too_large"},
	amqp.ErrCondNotAllowed:                {Class: relay.Refused, Reason: "not_allowed", Ambiguous: true},
	amqp.ErrCondDecodeError:               {Class: relay.Refused, Reason: "malformed", Ambiguous: true},
	amqp.ErrCondInvalidField:              {Class: relay.Refused, Reason: "malformed", Ambiguous: true},
	amqp.ErrCondNotImplemented:            {Class: relay.Refused, Reason: "malformed", Ambiguous: true},
	amqp.ErrCondPreconditionFailed:        {Class: relay.Refused, Reason: "malformed", Ambiguous: true},
	"com.microsoft:argument-error":        {Class: relay.Refused, Reason: "malformed", Ambiguous: true},
	"com.microsoft:argument-out-of-range": {Class: relay.Refused, Reason: "malformed", Ambiguous: true},
	"rejected":                            {Class: relay.Refused, Reason: "rejected", Ambiguous: true}, // without a reason
}

// The rules for all other errors. An unknown error is an outage, because a wrong outage delays events and
// a wrong refusal would park them.
var (
	unknown        = publish.Rule{Class: relay.Outage, Reason: "unknown", Ambiguous: true}
	timedOut       = publish.Rule{Class: relay.Outage, Reason: "send_timeout"}
	connectionLost = publish.Rule{Class: relay.Outage, Reason: "connection_lost", Ambiguous: true}
	credential     = publish.Rule{Class: relay.Outage, Reason: "credential"}
	closed         = publish.Rule{Class: relay.Outage, Reason: "client_closed"}
	linkRefused    = publish.Rule{Class: relay.Blocked, Reason: "link_refused"}
)

// classify classifies the error of a send or of opening the link. ctx is the context of the Publish
// call, attempt that of the single attempt.
func classify(ctx, attempt context.Context, err error) error {
	if ctx.Err() != nil {
		return relay.Ended(ctx)
	}
	return ruleFor(attempt, err).Wrap(err)
}

func ruleFor(attempt context.Context, err error) publish.Rule {
	delivery, notAccepted := errors.AsType[*notAcceptedError](err)
	amqpErr, isAMQP := errors.AsType[*amqp.Error](err)
	refusal, refused := errors.AsType[*wire.RefusedError](err)
	switch {
	case notAccepted:
		return byCondition.of(delivery.outcome.Condition)
	case attempt.Err() != nil:
		return timedOut
	case isAMQP:
		return ruleWithoutOutcome(err, byCondition.of(amqpErr.Condition))
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

func (r rules) of(condition amqp.ErrCond) publish.Rule {
	if rule, ok := r[condition]; ok {
		return rule
	}
	return unknown
}

// linkHadEnded reports whether an attempt failed because the link had ended for a temporary reason. It
// is false after a timeout.
func linkHadEnded(err error) bool {
	_, notAttached := errors.AsType[*attachError](err)
	return hasEnded(err) && !notAttached && relay.ClassOf(err) == relay.Outage && relay.ReasonOf(err) != timedOut.Reason
}

// ruleWithoutOutcome returns rule, or replaces it if it refuses a message without an outcome. If the link
// was not attached, the broker has received no message. If a session or connection ended, so did many
// links, and the message is not the likely cause. A link that ended in use may have ended because of the
// message.
func ruleWithoutOutcome(err error, rule publish.Rule) publish.Rule {
	_, notAttached := errors.AsType[*attachError](err)
	switch {
	case rule.Class != relay.Refused || !rule.Ambiguous:
		return rule
	case wire.Broken(err):
		return connectionLost
	case notAttached:
		return linkRefused
	}
	return rule
}

// isCredential reports whether err is an error of azidentity, all of which have this method.
func isCredential(err error) bool {
	var credentialErr interface {
		error
		NonRetriable()
	}
	return errors.As(err, &credentialErr)
}
