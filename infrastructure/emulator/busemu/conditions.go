package busemu

import (
	"errors"
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// Error conditions of the transport (AMQP 1.0 part 2, sections 2.8.15 to 2.8.18), for errors
// of the connection engine itself.
const (
	condInternalError    amqp.Symbol = "amqp:internal-error"
	condNotFound         amqp.Symbol = "amqp:not-found"
	condUnauthorized     amqp.Symbol = "amqp:unauthorized-access"
	condDecodeError      amqp.Symbol = "amqp:decode-error"
	condResourceLimit    amqp.Symbol = "amqp:resource-limit-exceeded"
	condNotAllowed       amqp.Symbol = "amqp:not-allowed"
	condInvalidField     amqp.Symbol = "amqp:invalid-field"
	condNotImplemented   amqp.Symbol = "amqp:not-implemented"
	condConnectionForced amqp.Symbol = "amqp:connection:forced"
	condFramingError     amqp.Symbol = "amqp:connection:framing-error"
	condWindowViolation  amqp.Symbol = "amqp:session:window-violation"
	condErrantLink       amqp.Symbol = "amqp:session:errant-link"
	condHandleInUse      amqp.Symbol = "amqp:session:handle-in-use"
	condUnattachedHandle amqp.Symbol = "amqp:session:unattached-handle"
	condTransferLimit    amqp.Symbol = "amqp:link:transfer-limit-exceeded"
	condMessageSize      amqp.Symbol = "amqp:link:message-size-exceeded"
	condDetachForced     amqp.Symbol = "amqp:link:detach-forced"
	condStolen           amqp.Symbol = "amqp:link:stolen"
)

// wireError converts any error for the wire. The broker's conditions stay; any other error is
// an internal error.
func wireError(err error) *amqp.Error {
	var be *broker.Error
	if errors.As(err, &be) {
		return &amqp.Error{Condition: amqp.Symbol(be.Condition), Description: be.Description}
	}
	var ae *amqp.Error
	if errors.As(err, &ae) {
		return ae
	}
	return &amqp.Error{Condition: condInternalError, Description: err.Error()}
}

// mgmtStatus returns the HTTP-like status of an error. The SDK decides by it (azservicebus
// internal/errors.go).
func mgmtStatus(err error) int {
	var be *broker.Error
	if !errors.As(err, &be) {
		return http.StatusInternalServerError
	}
	switch be.Condition {
	case UnauthorizedAccess:
		return http.StatusUnauthorized
	case broker.NotFound, broker.MessageNotFound:
		return http.StatusNotFound
	case broker.MessageLockLost, broker.SessionLockLost:
		return http.StatusGone
	case broker.Timeout:
		return http.StatusRequestTimeout
	case broker.EntityExists, broker.SessionCannotBeLocked:
		return http.StatusConflict
	case broker.ServerBusy:
		return http.StatusServiceUnavailable
	case broker.NotImplemented:
		return http.StatusNotImplemented
	case broker.ResourceLimitExceeded, broker.EntityDisabled:
		return http.StatusForbidden
	case broker.InternalError, broker.OperationCancelled:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}
