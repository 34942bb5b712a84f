package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"feedbox/domain/fault"
)

// What an operation of a batch came to.
var (
	ErrRefused  = errors.New("refused")
	ErrNoResult = errors.New("the reply has no result")
)

// Headers of replies (REST reference, "Common Azure Cosmos DB REST response headers").
const (
	HeaderRetryAfter = "x-ms-retry-after-ms"
	headerSubStatus  = "x-ms-substatus"
)

// The sub-status of a 404 that says "this replica has not caught up with the
// session yet", not "there is no such document".
const subStatusSessionNotAvailable = "1002"

// statusRetryWith (449) is a refusal for a concurrent write: nothing was done.
const statusRetryWith = 449

// AsFault turns an error of the SDK into a fault. What names what was done, such
// as "read order 4711".
func AsFault(what string, err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	var reply *azcore.ResponseError
	if errors.As(err, &reply) {
		return StatusFault(what, reply.StatusCode, reply.RawResponse, Cause(reply))
	}
	if errors.Is(err, context.Canceled) {
		return fault.Wrap(fault.Unavailable, "canceled", "the request was given up", fmt.Errorf("%s: %w", what, err))
	}
	return fault.Wrap(fault.Unavailable, "store_unavailable", "the store does not answer; try again", fmt.Errorf("%s: %w", what, err))
}

// StatusFault turns a status of a request, or of an operation of a batch, into a
// fault. Reply, for its headers, may be nil.
func StatusFault(what string, status int, reply *http.Response, cause error) error {
	cause = fmt.Errorf("%s: status %d: %w", what, status, cause)
	switch status {
	case http.StatusNotModified:
		return fault.Wrap(fault.NotModified, "", "the document has not changed", cause)
	case http.StatusNotFound:
		if Header(reply, headerSubStatus) == subStatusSessionNotAvailable {
			return fault.Wrap(fault.Unavailable, "session_not_available", "the store has not caught up yet; try again", cause)
		}
		return fault.Wrap(fault.NotFound, "", "there is no such document", cause)
	case http.StatusConflict:
		return fault.Wrap(fault.Conflict, "", "a document with this id exists", cause)
	case http.StatusPreconditionFailed:
		return fault.Wrap(fault.PreconditionFailed, "", "the document was changed by somebody else; read it again", cause)
	case http.StatusRequestEntityTooLarge:
		return fault.Wrap(fault.TooLarge, "", "the change is larger than the store takes", cause)
	case http.StatusTooManyRequests:
		throttled := fault.Wrap(fault.Throttled, "", "the store is busy; try again later", cause)
		throttled.RetryAfter = retryAfter(reply)
		return throttled
	case http.StatusRequestTimeout, statusRetryWith, http.StatusGone,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		unavailable := fault.Wrap(fault.Unavailable, "store_unavailable", "the store does not answer; try again", cause)
		unavailable.RetryAfter = retryAfter(reply)
		return unavailable
	default:
		return fault.Wrap(fault.Internal, "", "the store refused the request", cause)
	}
}

// Cause shortens the SDK's error, whose text is the whole reply, to what
// a log line takes. It still unwraps to the SDK's error.
func Cause(reply *azcore.ResponseError) error {
	return &replyError{reply: reply}
}

type replyError struct{ reply *azcore.ResponseError }

func (e *replyError) Error() string {
	return fmt.Sprintf("%s (activity %s)", e.reply.ErrorCode, Header(e.reply.RawResponse, "x-ms-activity-id"))
}

func (e *replyError) Unwrap() error { return e.reply }

// retryAfter returns how long a reply asks to wait; zero if it does not say.
func retryAfter(reply *http.Response) time.Duration {
	ms, err := strconv.ParseInt(Header(reply, HeaderRetryAfter), 10, 64)
	if err != nil || ms < 0 {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// Header is a header of a reply; empty without one.
func Header(reply *http.Response, name string) string {
	if reply == nil {
		return ""
	}
	return reply.Header.Get(name)
}

// SessionOf returns the session token of an error reply; empty if it has none.
func SessionOf(err error) string {
	var reply *azcore.ResponseError
	if errors.As(err, &reply) {
		return Header(reply.RawResponse, HeaderSession)
	}
	return ""
}

// Ambiguous reports whether a write that ended in err may have been applied.
func Ambiguous(err error) bool {
	var reply *azcore.ResponseError
	if errors.As(err, &reply) {
		switch reply.StatusCode {
		case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		default:
			return false
		}
	}
	return !NeverSent(err)
}

// NeverSent reports whether err proves that the request did not leave this host.
func NeverSent(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns), errors.Is(err, syscall.ECONNREFUSED):
		return true
	case errors.As(err, &op):
		return op.Op == "dial"
	default:
		return false
	}
}
