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

// Causes of the faults of a batch.
var (
	ErrRefused  = errors.New("refused")
	ErrNoResult = errors.New("the reply has no result")
)

// Headers of replies (REST reference, "Common Azure Cosmos DB REST response headers").
const (
	HeaderRetryAfter = "x-ms-retry-after-ms"
	headerSubStatus  = "x-ms-substatus"
)

// The sub-status of a 404 from a replica that has not caught up with the session. The document
// may exist.
const subStatusSessionNotAvailable = "1002"

// The sub-status of a 404 from a container that the service is still creating, which takes
// seconds after the request to create it was answered.
const subStatusBeingCreated = "1013"

// The sub-status of a 404 from a database or a container that does not exist.
const subStatusOwnerNotFound = "1003"

// The sub-statuses of a 403 from a region that does not serve the account any more: it accepts
// no writes, or it was removed. The account advertises such a region for some minutes.
const (
	subStatusWriteForbidden  = "3"
	subStatusAccountNotFound = "1008"
)

// failoverWait is the wait that callers are asked for during a failover. It takes minutes, but
// the SDK reads the account again every two seconds, so the first callers after it succeed.
const failoverWait = 5 * time.Second

// RefusedByRegion reports whether a reply is the refusal of a region during or after a failover.
// All other 403s are permanent: a missing role or a firewall.
func RefusedByRegion(status int, reply *http.Response) bool {
	sub := Header(reply, headerSubStatus)
	return status == http.StatusForbidden && (sub == subStatusWriteForbidden || sub == subStatusAccountNotFound)
}

// statusRetryWith (449) is a refusal because of a concurrent write. Nothing was written.
const statusRetryWith = 449

// AsFault returns an error of the SDK as a fault. what names the operation, such as "read order
// 4711".
func AsFault(what string, err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	var reply *azcore.ResponseError
	if errors.As(err, &reply) && !Tokenless(err) {
		return StatusFault(what, reply.StatusCode, reply.RawResponse, Cause(reply))
	}
	if errors.Is(err, context.Canceled) {
		return fault.Wrap(fault.Unavailable, "canceled", "the request was canceled", fmt.Errorf("%s: %w", what, err))
	}
	return fault.Wrap(fault.Unavailable, "store_unavailable", "the store does not answer; try again", fmt.Errorf("%s: %w", what, err))
}

// StatusFault returns the status of a request, or of an operation of a batch, as a fault. reply
// provides the headers and may be nil.
func StatusFault(what string, status int, reply *http.Response, cause error) error {
	cause = fmt.Errorf("%s: status %d: %w", what, status, cause)
	if RefusedByRegion(status, reply) {
		moving := fault.Wrap(fault.Unavailable, "store_unavailable", "the store moves to another region; try again", cause)
		moving.RetryAfter = max(retryAfter(reply), failoverWait)
		return moving
	}
	switch status {
	case http.StatusForbidden:
		return fault.Wrap(fault.Internal, "", "the store refused the request", fmt.Errorf("%w: the identity of this process has no role that allows it, or the account's firewall excludes its network: feedbox doctor names the remedy", cause))
	case http.StatusNotModified:
		return fault.Wrap(fault.NotModified, "", "the document has not changed", cause)
	case http.StatusNotFound:
		switch Header(reply, headerSubStatus) {
		case subStatusSessionNotAvailable:
			return fault.Wrap(fault.Unavailable, "session_not_available", "the store has not caught up yet; try again", cause)
		case subStatusBeingCreated:
			return fault.Wrap(fault.Unavailable, "store_unavailable", "the container is being created; try again", cause)
		case subStatusOwnerNotFound:
			return fault.Wrap(fault.NotFound, "", "the database or the container does not exist", fmt.Errorf("%w: azd provision creates them; otherwise correct FEEDBOX_COSMOS_DATABASE and the names of the containers", cause))
		}
		return fault.Wrap(fault.NotFound, "", "there is no such document", cause)
	case http.StatusConflict:
		return fault.Wrap(fault.Conflict, "", "a document with this id exists", cause)
	case http.StatusPreconditionFailed:
		return fault.Wrap(fault.PreconditionFailed, "", "the document was changed in the meantime; read it again", cause)
	case http.StatusRequestEntityTooLarge:
		return fault.Wrap(fault.TooLarge, "", "the change is larger than the store allows", cause)
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

// Cause shortens the text of the SDK's error, which is the whole reply, to one line. It unwraps
// to the SDK's error.
func Cause(reply *azcore.ResponseError) error {
	return &replyError{reply: reply}
}

type replyError struct{ reply *azcore.ResponseError }

func (e *replyError) Error() string {
	if host := RegionOf(e.reply); host != "" {
		return fmt.Sprintf("the region at %s refuses it, as during a failover (sub-status %s, activity %s)", host, Header(e.reply.RawResponse, headerSubStatus), Header(e.reply.RawResponse, "x-ms-activity-id"))
	}
	return fmt.Sprintf("%s (activity %s)", e.reply.ErrorCode, Header(e.reply.RawResponse, "x-ms-activity-id"))
}

func (e *replyError) Unwrap() error { return e.reply }

// RegionOf returns the host of the region that refused a request, "" for other errors.
func RegionOf(err error) string {
	var reply *azcore.ResponseError
	if !errors.As(err, &reply) || !RefusedByRegion(reply.StatusCode, reply.RawResponse) || reply.RawResponse.Request == nil {
		return ""
	}
	return reply.RawResponse.Request.URL.Host
}

// retryAfter returns the wait that a reply asks for; zero if it asks for none.
func retryAfter(reply *http.Response) time.Duration {
	ms, err := strconv.ParseInt(Header(reply, HeaderRetryAfter), 10, 64)
	if err != nil || ms < 0 {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// Header returns a header of a reply; empty if reply is nil.
func Header(reply *http.Response, name string) string {
	if reply == nil {
		return ""
	}
	return reply.Header.Get(name)
}

// SessionOf returns the session token of an error reply, if it has one.
func SessionOf(err error) string {
	var reply *azcore.ResponseError
	if errors.As(err, &reply) {
		return Header(reply.RawResponse, HeaderSession)
	}
	return ""
}

// SessionNotAvailable reports whether no replica has reached the session token of a read.
func SessionNotAvailable(err error) bool {
	var reply *azcore.ResponseError
	return errors.As(err, &reply) && reply.StatusCode == http.StatusNotFound && Header(reply.RawResponse, headerSubStatus) == subStatusSessionNotAvailable
}

// BeingCreated reports whether the service is still creating the container of a request.
func BeingCreated(err error) bool {
	var reply *azcore.ResponseError
	return errors.As(err, &reply) && reply.StatusCode == http.StatusNotFound && Header(reply.RawResponse, headerSubStatus) == subStatusBeingCreated
}

// Ambiguous reports whether a write that ended in err may have been applied.
func Ambiguous(err error) bool {
	var reply *azcore.ResponseError
	if errors.As(err, &reply) && !Tokenless(err) {
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

// CredentialError is the error of a credential. The request needs its token, so it was not sent.
type CredentialError struct{ Err error }

func (e *CredentialError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the credential.
func (e *CredentialError) Unwrap() error { return e.Err }

// Tokenless reports whether err is a CredentialError. It may contain the reply of the service that the
// credential asked, which is not that of the store.
func Tokenless(err error) bool {
	var credential *CredentialError
	return errors.As(err, &credential)
}

// NeverSent reports whether err proves that the request was not sent.
func NeverSent(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns), Tokenless(err), errors.Is(err, syscall.ECONNREFUSED):
		return true
	case errors.As(err, &op):
		return op.Op == "dial"
	default:
		return false
	}
}
