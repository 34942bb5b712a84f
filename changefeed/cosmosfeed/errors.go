package cosmosfeed

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"feedbox/changefeed"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

const (
	headerSubStatus  = "x-ms-substatus"
	headerRetryAfter = "x-ms-retry-after-ms"
	headerSession    = "x-ms-session-token"
)

// translate returns the errors that the processor distinguishes. It treats all other errors
// as transient.
func translate(err error) error {
	var reply *azcore.ResponseError
	if err == nil || !errors.As(err, &reply) {
		return err
	}
	sub := ""
	var retryAfter time.Duration
	if reply.RawResponse != nil {
		sub = reply.RawResponse.Header.Get(headerSubStatus)
		if ms, err := strconv.Atoi(reply.RawResponse.Header.Get(headerRetryAfter)); err == nil {
			retryAfter = time.Duration(ms) * time.Millisecond
		}
	}
	switch reply.StatusCode {
	case http.StatusConflict:
		return wrap(changefeed.ErrExists, err)
	case http.StatusPreconditionFailed:
		return wrap(changefeed.ErrETagMismatch, err)
	case http.StatusTooManyRequests:
		return &changefeed.ThrottledError{RetryAfter: retryAfter, Err: err}
	case http.StatusUnauthorized:
		return wrap(changefeed.ErrPermanent, err)
	case http.StatusForbidden:
		return forbidden(sub, reply, err)
	case http.StatusNotFound:
		switch sub {
		case "", "0":
			return wrap(changefeed.ErrNotFound, err)
		case "1003": // the container or database does not exist
			return wrap(changefeed.ErrPermanent, err)
		}
	}
	return err
}

// forbidden explains a 403. During a failover a region refuses requests while the account still
// advertises it. That is an outage, unlike a missing role or a firewall.
func forbidden(sub string, reply *azcore.ResponseError, err error) error {
	switch {
	case sub == "3", sub == "1008": // writes have moved, or the region was removed
		host := "an unknown host"
		if reply.RawResponse.Request != nil {
			host = reply.RawResponse.Request.URL.Host
		}
		return fmt.Errorf("the region at %s refuses the request, as during a failover (403/%s): %w", host, sub, err)
	case sub == "", sub == "0", strings.HasPrefix(sub, "530"): // 5300 to 5309 are refusals by roles
		return fmt.Errorf("%w: the identity has no role that allows this, or the account's firewall excludes this network: %w", changefeed.ErrPermanent, err)
	}
	return err
}

func wrap(kind, err error) error { return fmt.Errorf("%w: %w", kind, err) }

// absent makes a missing container or database permanent, for requests that are not about a
// single record.
func absent(err error) error {
	if errors.Is(err, changefeed.ErrNotFound) {
		return wrap(changefeed.ErrPermanent, err)
	}
	return err
}
