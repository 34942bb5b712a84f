package cosmosfeed

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
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

// What the service said stays in the error; without a reply that is all there is.
func TestARefusalKeepsItsCause(t *testing.T) {
	for _, status := range []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusNotFound, http.StatusBadGateway} {
		bare := &azcore.ResponseError{StatusCode: status, ErrorCode: "why"}
		if err := translate(fmt.Errorf("sent: %w", bare)); !errors.Is(err, bare) {
			t.Errorf("%d: %v does not tell what the service said", status, err)
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

// What is cut off or is no page is an error, whatever was read before it.
func TestWhatIsNoPageIsRefused(t *testing.T) {
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

// A container without a partition key path cannot be served, now or later.
func TestAContainerNeedsAPartitionKey(t *testing.T) {
	if _, err := newKeyPaths(azcosmos.PartitionKeyDefinition{Version: 2}); !errors.Is(err, changefeed.ErrPermanent) {
		t.Errorf("error %v, want one for good", err)
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

// A document without a partition key has none, whatever the one before it had.
func TestADocumentHasItsOwnKey(t *testing.T) {
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

// The lower bound of a range is in it, the upper one is the next one's.
func TestABoundIsInOneRange(t *testing.T) {
	bounds := []string{"", "1F", "1F00000000000000000000000000AB", "FF"}
	key, _ := parseBound(bounds[2])
	for i, want := range []bool{false, false, true} {
		s, ok := newSpan(changefeed.FeedRange{Min: bounds[i], Max: bounds[i+1]})
		if !ok || s.has(key) != want {
			t.Errorf("%s is in %s: %t, want %t", bounds[2], s.rng, !want, want)
		}
	}
}

// Which range replied is known only from a list that shows one range there: a list that
// shows several, or none, is of another time.
func TestAReplyIsOfOneListedRange(t *testing.T) {
	asked, outside := changefeed.FeedRange{Min: "10", Max: "20"}, changefeed.FeedRange{Min: "30", Max: "FF"}
	lower, upper := changefeed.FeedRange{Min: "", Max: "18"}, changefeed.FeedRange{Min: "18", Max: "30"}
	whole := changefeed.FeedRange{Min: "", Max: "30"}
	for _, c := range []struct {
		listed []changefeed.FeedRange
		want   seenRange
	}{
		{[]changefeed.FeedRange{whole, outside}, seenRange{id: "7", bounds: whole}},
		{[]changefeed.FeedRange{lower, upper, outside}, seenRange{}},
		{[]changefeed.FeedRange{outside}, seenRange{}},
	} {
		if got := matchRange("7", asked, slices.Clone(c.listed)); got != c.want {
			t.Errorf("listed %v: %+v, want %+v", c.listed, got, c.want)
		}
	}
}
