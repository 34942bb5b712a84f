package cosmosfeed

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"feedbox/changefeed"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Each refusal of the service is the error that the processor tells apart, or none of them.
func TestRefusalsAreToldApart(t *testing.T) {
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
		{http.StatusNotFound, "1002", nil}, // a replica that is behind
		{http.StatusNotFound, "1003", changefeed.ErrPermanent},
		{http.StatusForbidden, "", nil},
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

func refusal(status int, header, value string) error {
	reply := &http.Response{StatusCode: status, Header: http.Header{}}
	reply.Header.Set(header, value)
	return &azcore.ResponseError{StatusCode: status, RawResponse: reply}
}

func TestTheLSNOfASessionToken(t *testing.T) {
	for session, want := range map[string]int64{"0:-1#12": 12, "0:1#12#3=4": 12, "0:12": 12, "0:x": 0, "12": 0, "": 0} {
		if got := sessionLSN(session); got != want {
			t.Errorf("session %q has LSN %d, want %d", session, got, want)
		}
	}
}

// The key of a document may lie deeper in it, and have parts.
func TestKeysAreFoundByTheirPaths(t *testing.T) {
	const body = `{"_rid":"r","Documents":[{"a":{"b":"x","c":1},"d":2,"_lsn":7,"_ts":3}],"_count":1}`
	for want, paths := range map[string][]string{`"x"`: {"/a/b"}, `2`: {"/d"}, `2,"x",`: {"/d", "/a/b"}, ``: {"/a/e"}} {
		keys, err := newKeyPaths(azcosmos.PartitionKeyDefinition{Paths: paths, Version: 2})
		if err != nil {
			t.Fatal(err)
		}
		d := decoder{keys: keys, filter: &filter{}, values: make([][]byte, len(paths))}
		if err := d.page([]byte(body)); err != nil || len(d.items) != 1 {
			t.Fatalf("%d items, %v", len(d.items), err)
		}
		if got := d.items[0]; string(got.Key) != want || fmt.Sprint(got.LSN, got.Timestamp) != "7 3" {
			t.Errorf("paths %v: key %s, LSN %d, time %d; want %s", paths, got.Key, got.LSN, got.Timestamp, want)
		}
	}
}
