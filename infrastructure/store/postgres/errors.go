package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"feedbox/domain/fault"
)

// Conditions of the server (PostgreSQL manual, appendix A).
const (
	uniqueViolation      = "23505"
	undefinedTable       = "42P01"
	invalidSchema        = "3F000"
	classPrivilege       = "42501"
	classAuthorization   = "28"
	classResources       = "53" // too many connections, disk full
	classLimits          = "54" // a value is too large
	classOperator        = "57" // shut down, cancelled
	classRollback        = "40" // deadlock, serialization failure
	completionUnknown    = "40003"
	classConnection      = "08"
	classReadOnly        = "25006"
	idleInTransaction    = "25P03"
	longTransaction      = "25P04" // exceeds the transaction_timeout of the role
	invalidTextEncodings = "22021"
	notSupported         = "0A000"
	undefinedFunction    = "42883"
	lockNotAvailable     = "55P03" // within the lock_timeout of the database or the role
	notReady             = "55000" // a replica has no position in a log of its own
)

// code returns the server's condition; "" if err is not an answer of the server.
func code(err error) string {
	if reply, ok := errors.AsType[*pgconn.PgError](err); ok {
		return reply.Code
	}
	return ""
}

// panicked reports whether the server crashed while it processed the request, for example because it could not
// write its log. The code is that of the cause, and says nothing about the transaction.
func panicked(err error) bool {
	reply, ok := errors.AsType[*pgconn.PgError](err)
	return ok && reply.SeverityUnlocalized == "PANIC"
}

// answered reports whether the server processed the request. A standby does not process writes.
func answered(err error) bool {
	if panicked(err) {
		return false
	}
	c := code(err)
	unfit := c == classReadOnly || c == notReady || strings.HasPrefix(c, classResources) || strings.HasPrefix(c, classOperator) || strings.HasPrefix(c, classConnection) || strings.HasPrefix(c, classAuthorization)
	return err == nil || errors.Is(err, pgx.ErrNoRows) || c != "" && !unfit
}

// asFault returns an error of the driver as a fault. what names the operation.
func asFault(what string, err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	wrapped := fmt.Errorf("%s: %w", what, err)
	c := code(err)
	switch {
	case errors.Is(err, context.Canceled):
		return fault.Wrap(fault.Unavailable, "canceled", "the request was canceled", wrapped)
	case panicked(err):
		return fault.Wrap(fault.Unavailable, "store_unavailable", "the store does not answer; try again", wrapped)
	case c == undefinedTable, c == invalidSchema:
		return fault.Wrap(fault.Internal, "", "the database has no schema", wrapped)
	case c == classPrivilege, strings.HasPrefix(c, classAuthorization):
		return fault.Wrap(fault.Internal, "", "the database refuses this user", wrapped)
	case strings.HasPrefix(c, classLimits):
		return fault.Wrap(fault.TooLarge, "", "the change is larger than the store allows", wrapped)
	case c == invalidTextEncodings:
		return fault.Wrap(fault.Invalid, "", "the change contains text that the store cannot keep", wrapped)
	case c == "", c == classReadOnly, c == idleInTransaction, c == longTransaction, c == notReady, c == lockNotAvailable, strings.HasPrefix(c, classResources), strings.HasPrefix(c, classOperator), strings.HasPrefix(c, classRollback), strings.HasPrefix(c, classConnection):
		return fault.Wrap(fault.Unavailable, "store_unavailable", "the store does not answer; try again", wrapped)
	default:
		return fault.Wrap(fault.Internal, "", "the store refused the request", wrapped)
	}
}

// Ambiguous implements recordstore.Store. A server that answers with a condition has rolled back,
// unless it was shut down or crashed during the commit.
func (Records) Ambiguous(err error) bool {
	c := code(err)
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	if panicked(err) || c == completionUnknown {
		return !connecting
	}
	return err != nil && !pgconn.SafeToRetry(err) && !connecting && (c == "" || strings.HasPrefix(c, classConnection) || c == "57P01" || c == "57P02")
}
