package cosmosfeed

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"feedbox/changefeed"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

func TestServiceErrorsAreTranslated(t *testing.T) {
	kinds := []error{changefeed.ErrExists, changefeed.ErrETagMismatch, changefeed.ErrNotFound, changefeed.ErrPermanent}
	for _, tt := range []struct {
		status int
		sub    string
		want   error
	}{
		{http.StatusConflict, "", changefeed.ErrExists},
		{http.StatusPreconditionFailed, "", changefeed.ErrETagMismatch},
		{http.StatusUnauthorized, "", changefeed.ErrPermanent},
		{http.StatusNotFound, "", changefeed.ErrNotFound},
		{http.StatusNotFound, "0", changefeed.ErrNotFound},
		{http.StatusNotFound, "1002", nil}, // a replica that lags
		{http.StatusNotFound, "1003", changefeed.ErrPermanent},
		{http.StatusForbidden, "", changefeed.ErrPermanent}, // the account's firewall, or a disabled key
		{http.StatusForbidden, "0", changefeed.ErrPermanent},
		{http.StatusForbidden, "5300", changefeed.ErrPermanent}, // no role assignment
		{http.StatusForbidden, "3", nil},                        // writes have moved to another region
		{http.StatusForbidden, "1008", nil},                     // the region was removed
		{http.StatusForbidden, "1014", nil},                     // a full logical partition
		{http.StatusServiceUnavailable, "", nil},
	} {
		err := translate(refusal(tt.status, headerSubStatus, tt.sub))
		for _, kind := range kinds {
			if errors.Is(err, kind) != errors.Is(tt.want, kind) {
				t.Errorf("%d/%s: %v, want %v", tt.status, tt.sub, err, tt.want)
			}
		}
	}
	throttled, ok := errors.AsType[*changefeed.ThrottledError](translate(refusal(http.StatusTooManyRequests, headerRetryAfter, "250")))
	if !ok || throttled.RetryAfter != 250*time.Millisecond {
		t.Errorf("throttled %+v, want a wait of 250 ms", throttled)
	}
}

// Without a reply it is returned unchanged.
func TestTranslatedErrorKeepsItsCause(t *testing.T) {
	for _, status := range []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusNotFound, http.StatusBadGateway} {
		bare := &azcore.ResponseError{StatusCode: status, ErrorCode: "why"}
		if err := translate(fmt.Errorf("sent: %w", bare)); !errors.Is(err, bare) {
			t.Errorf("%d: %v does not contain the service's message", status, err)
		}
	}
	other := errors.New("no reply")
	if err := translate(other); err != other { //nolint:errorlint // the same, not one like it
		t.Errorf("%v became %v", other, err)
	}
	if err := translate(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	if err := absent(wrap(changefeed.ErrNotFound, other)); !errors.Is(err, changefeed.ErrPermanent) || !errors.Is(err, other) {
		t.Errorf("a container that is not there is %v, want it for good", err)
	}
	if err := absent(other); err != other { //nolint:errorlint // the same, not one like it
		t.Errorf("%v became %v", other, err)
	}
}

func refusal(status int, header, value string) error {
	reply := &http.Response{StatusCode: status, Header: http.Header{}}
	reply.Header.Set(header, value)
	return &azcore.ResponseError{StatusCode: status, RawResponse: reply}
}
