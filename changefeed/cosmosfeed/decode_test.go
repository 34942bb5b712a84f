package cosmosfeed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/changefeed"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A page is refused even if documents before the error were readable.
func TestInvalidPageIsRefused(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{}`, `{"_rid":"r","_count":1}`, `{"Documents":5}`, `{"Documents":[{"a":1}`, `{"Documents":[{"a":1},{"a":`,
		`{"Documents":[{"a":1}]`, `{"Documents":[5]}`, `{"Documents":[{"a":1}],"_count"`,
	} {
		d := decoder{keys: keyPaths{paths: [][]string{{"a"}}}, filter: &filter{}, values: make([][]byte, 1)}
		if err := d.page([]byte(body)); !errors.Is(err, errNotAPage) {
			t.Errorf("%s: error %v, want %v", body, err, errNotAPage)
		}
	}
}

func TestInvalidPageOfVersionsIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"Documents":[{"a":1}]}`:             errNotAPage.Error(),
		`{"Documents":[{"current":{"a":1}}]}`: errNotAPage.Error(),
		`{"Documents":[{"current":5,"metadata":{"lsn":7,"operationType":"create"}}]}`:         errNotAPage.Error(),
		`{"Documents":[{"metadata":{"lsn":7,"operationType":"replace"}}]}`:                    errNotAPage.Error(),
		`{"Documents":[{"current":{"a":1},"metadata":{"lsn":7,"operationType":"truncate"}}]}`: "truncate",
	} {
		d := decoder{keys: keyPaths{paths: [][]string{{"a"}}}, filter: &filter{}, values: make([][]byte, 1), versions: true}
		if err := d.page([]byte(body)); err == nil || !strings.Contains(err.Error(), want) || len(d.items) > 0 {
			t.Errorf("%s: %d items, error %v, want one with %q", body, len(d.items), err, want)
		}
	}
}

// Otherwise it would be ordered, and assigned to a lease, as a change of another document.
func TestDocumentWithoutKeyDoesNotGetThatBefore(t *testing.T) {
	for body, versions := range map[string]bool{
		`{"Documents":[{"a":"x","_lsn":7},{"b":1,"_lsn":8}]}`: false,
		`{"Documents":[{"current":{"a":"x"},"metadata":{"lsn":7,"operationType":"create"}},{"current":{"b":1},"metadata":{"lsn":8,"operationType":"create"}}]}`: true,
	} {
		d := decoder{keys: keyPaths{paths: [][]string{{"a"}}}, filter: &filter{}, values: make([][]byte, 1), versions: versions}
		if err := d.page([]byte(body)); err != nil || len(d.items) != 2 {
			t.Fatalf("%d items, %v", len(d.items), err)
		}
		if first, second := d.items[0].Key, d.items[1].Key; string(first) != `"x"` || len(second) > 0 {
			t.Errorf("all versions %t: keys %s and %q, want the second to be empty", versions, first, second)
		}
	}
}

// A page is refused, or its items are parts of it that are documents.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"_rid":"r","Documents":[{"a":{"b":"x"},"_lsn":7,"_ts":3}],"_count":1}`), false)
	f.Add([]byte(`{"Documents":[{"current":{"a":1},"metadata":{"lsn":7,"crts":3,"operationType":"create"}},{"current":{},"previous":{"a":2},"metadata":{"lsn":8,"operationType":"delete"}}]}`), true)
	f.Fuzz(func(t *testing.T, body []byte, versions bool) {
		d := decoder{keys: keyPaths{paths: [][]string{{"a"}}}, filter: &filter{}, values: make([][]byte, 1), versions: versions}
		if err := d.page(body); err != nil || !json.Valid(body) {
			return // the scanner does not check all of JSON: the service wrote the page
		}
		for _, item := range d.items {
			var document map[string]json.RawMessage
			if err := json.Unmarshal(item.Raw, &document); err != nil || !bytes.Contains(body, item.Raw) {
				t.Errorf("the item %q is no document of the page: %v", item.Raw, err)
			}
		}
	})
}

// Retrying cannot help, so the error is permanent.
func TestContainerNeedsAPartitionKey(t *testing.T) {
	if _, err := newKeyPaths(azcosmos.PartitionKeyDefinition{Version: 2}); !errors.Is(err, changefeed.ErrPermanent) {
		t.Errorf("error %v, want one for good", err)
	}
}

// The key may be nested, and may have several parts.
func TestKeysAreFoundByTheirPaths(t *testing.T) {
	const body = `{"_rid":"r","Documents":[{"a":{"b":"x","c":1},"d":2,"_lsn":7,"_ts":3}],"_count":1}`
	for want, paths := range map[string][]string{
		`"x"`: {"/a/b"}, `2`: {"/d"}, `2,"x",`: {"/d", "/a/b"}, `"x",1,`: {"/a/b", "/a/c"}, ``: {"/a/e"},
	} {
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

// The key of the previous document is not reused.
func TestDocumentWithoutKeyHasNoKey(t *testing.T) {
	const body = `{"Documents":[{"a":1,"b":2},{"b":3},{"a":4}]}`
	keys, err := newKeyPaths(azcosmos.PartitionKeyDefinition{Paths: []string{"/a", "/b"}, Version: 2})
	if err != nil {
		t.Fatal(err)
	}
	d := decoder{keys: keys, filter: &filter{}, values: make([][]byte, 2)}
	if err := d.page([]byte(body)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1,2,", ",3,", "4,,"} {
		if got := string(d.items[i].Key); got != want {
			t.Errorf("document %d has the key %s, want %s", i, got, want)
		}
	}
}

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
		{http.StatusForbidden, "5302", changefeed.ErrPermanent}, // a role without this action
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

// A position is the service's ETag with its quotes. The SDK ignores any other position and
// starts from the beginning.
func TestPositionIsAQuotedETag(t *testing.T) {
	r := changefeed.FeedRange{Min: "10", Max: "20"}
	for position, ok := range map[string]bool{
		`"12"`: true, `""12""`: true, "": true, fromNow: true,
		`""`: false, `"`: false, `12`: false, `"12`: false, `12"`: false, `x"12"`: false, "**": false,
	} {
		text, err := encodeToken("rid", r, position)
		if (err == nil) != ok {
			t.Errorf("position %s: error %v", position, err)
		}
		if err != nil {
			continue
		}
		if got, err := decodeToken(text, r); err != nil || got != position {
			t.Errorf("position %s came back as %s, %v", position, got, err)
		}
	}
}

func TestReplyHasOnePositionOrASplit(t *testing.T) {
	r := changefeed.FeedRange{Min: "10", Max: "20"}
	for _, text := range []string{``, `5`, `{}`, `{"continuation":[]}`, `{"continuation":[{"minInclusive":`} {
		if position, err := decodeToken(text, r); err == nil {
			t.Errorf("%s: taken for the position %q", text, position)
		}
	}
	_, err := decodeToken(`{"continuation":[{"minInclusive":"10","maxExclusive":"18","continuationToken":"\"7\""},{"minInclusive":"18","maxExclusive":"20"}]}`, r)
	split, ok := errors.AsType[*changefeed.SplitError](err)
	if want := []changefeed.FeedRange{{Min: "10", Max: "18"}, {Min: "18", Max: "20"}}; !ok || split.Range != r || !slices.Equal(split.Children, want) {
		t.Errorf("split %+v, want %s into %v", err, r, want)
	}
}

func TestSessionLSN(t *testing.T) {
	for session, want := range map[string]int64{"0:-1#12": 12, "0:1#12#3=4": 12, "0:12": 12, "0:x": 0, "12": 0, "": 0} {
		if got := sessionLSN(session); got != want {
			t.Errorf("session %q has LSN %d, want %d", session, got, want)
		}
	}
}

func TestSessionTerm(t *testing.T) {
	for session, want := range map[string]string{"0:-1#12": "0:-1", "7:1#12#3=4": "7:1", "0:12": "", "": ""} {
		if got := sessionTerm(session); got != want {
			t.Errorf("session %q has the term %q, want %q", session, got, want)
		}
	}
}

// The buffer of a rare huge page is not kept, also after a small page was read into it.
func TestHugeBuffersAreNotReused(t *testing.T) {
	for capacity, want := range map[int]int{maxPooled: 0, maxPooled + 1: 10} {
		b := make([]byte, 10, capacity)
		if recycle(&b); len(b) != want {
			t.Errorf("a buffer of %d bytes has %d in use, want %d: it is emptied for reuse, or dropped", capacity, len(b), want)
		}
	}
}
