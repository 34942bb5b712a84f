package cosmosfeed_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
)

// The charge includes the second read that finds the bounds of a range.
func TestChargeIncludesRepeatedReads(t *testing.T) {
	a := newAccount(t, 2, true)
	a.put(40, 10)
	feed := a.feed("data")
	req := changefeed.ReadRequest{Range: changefeed.FeedRange{Min: "", Max: "1FFF"}, MaxItems: 5}
	var charges []float64
	for range 2 {
		page, err := feed.Read(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		charges = append(charges, page.RequestCharge)
	}
	if charges[1] <= 0 || charges[0] != 2*charges[1] {
		t.Errorf("charges %v, want the first to be that of two reads", charges)
	}
}

func TestItemsStayUntilTheirPageIsReleased(t *testing.T) {
	a := newAccount(t, 1, true)
	a.put(60, 10)
	feed := a.feed("data")
	var pages []*changefeed.Page
	var copies [][]byte
	at := ""
	for range 8 {
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: at, MaxItems: 5})
		if err != nil || len(page.Items) == 0 {
			t.Fatalf("%d items, %v", len(page.Items), err)
		}
		pages, copies, at = append(pages, page), append(copies, bytes.Clone(page.Items[0].Raw)), page.Continuation
	}
	for i, page := range pages {
		if !bytes.Equal(page.Items[0].Raw, copies[i]) {
			t.Fatalf("page %d has %s, had %s", i, page.Items[0].Raw, copies[i])
		}
		page.Release()
	}
}

// cutting truncates the bodies of some feed replies.
type cutting struct{ left atomic.Int32 }

func (c *cutting) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err == nil && req.Raw().Header.Get("x-ms-documentdb-partitionkeyrangeid") != "" && resp.StatusCode == http.StatusOK && c.left.Add(-1) >= 0 {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(resp.Body, 100), iotest.ErrReader(io.ErrUnexpectedEOF)), resp.Body}
	}
	return resp, err
}

// cuttingFeed returns a feed of 20 changes whose pages can be cut.
func cuttingFeed(t *testing.T) (*cutting, changefeed.Feed) {
	t.Helper()
	srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 1})
	cut := &cutting{}
	options := *srv.ClientOptions()
	options.PerRetryPolicies = append(options.PerRetryPolicies, cut)
	a := connect(t, srv, srv.Endpoint(), cosmosfeed.ClientOptions(&options))
	a.create()
	a.put(20, 5)
	return cut, a.feed("data")
}

// A truncated page is not used, and the next read returns all of it.
func TestTruncatedPageIsReadAgain(t *testing.T) {
	cut, feed := cuttingFeed(t)
	req := changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 50}
	cut.left.Store(1)
	if page, err := feed.Read(t.Context(), req); err == nil {
		t.Fatalf("%d items of a page that was cut off", len(page.Items))
	} else if errors.Is(err, changefeed.ErrPermanent) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want a transient one with its cause", err)
	}
	page, err := feed.Read(t.Context(), req)
	if err != nil || len(page.Items) != 20 {
		t.Fatalf("%+v, %v", page, err)
	}
	size := 0
	for _, item := range page.Items {
		size += len(item.Raw)
	}
	if page.Bytes < size {
		t.Errorf("a page of %d bytes has documents of %d", page.Bytes, size)
	}
}

// The buffer of a truncated page is reused once. Otherwise two pages would share it.
func TestPagesAfterATruncatedOneShareNoMemory(t *testing.T) {
	cut, feed := cuttingFeed(t)
	read := func(from string) (*changefeed.Page, error) {
		return feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: from, MaxItems: 5})
	}
	for range 30 { // the pool keeps a buffer in most cases, not always
		cut.left.Store(1)
		if _, err := read(""); err == nil {
			t.Fatal("a truncated page was used")
		}
		first, err := read("")
		if err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(first.Items[0].Raw)
		second, err := read(first.Continuation)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Items[0].Raw, before) {
			t.Fatalf("a document became %s, was %s", first.Items[0].Raw, before)
		}
		first.Release()
		second.Release()
	}
}

// Other requests include feed reads of other callers.
func TestClientOptionsLeaveOtherRequestsUnchanged(t *testing.T) {
	a := newAccount(t, 1, true)
	a.put(20, 5)
	ranges, err := a.data.ReadFeedRanges(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := a.data.ReadChangeFeed(t.Context(), &azcosmos.ChangeFeedOptions{FeedRange: &ranges[0]})
	if err != nil || len(resp.Items) != 20 {
		t.Errorf("%d documents, %v", len(resp.Items), err)
	}
}

// The values are from the SDKs' shared baseline (azcosmos, internal/epk/testdata), with the
// two top bits of each part cleared.
func TestEffectivePartitionKeys(t *testing.T) {
	for _, tt := range []struct {
		want   string
		values []string // raw JSON, "" is undefined
	}{
		{"51622DAA78F835834610ABE56EFF5CB5", []string{""}},
		{"778867E4430E67857ACE5C908374FE16", []string{"null"}},
		{"4E711127C5B5A8E4726AC6DD306A3E59", []string{"true"}},
		{"EFE1BE91E90A3439635E0E9E37361EF2", []string{"false"}},
		{"B2E9366E637A71B4E710384B2F4970A0", []string{`""`}},
		{"608BF1D598F5B63AD5520F04FE58C5E8", []string{`"asdf"`}},
		{"608BF1D598F5B63AD5520F04FE58C5E8", []string{`"\u0061sdf"`}},
		{"3C02F609961C32AAC2B912B940D1209A", []string{`"` + strings.Repeat("a", 99) + `"`}},
		{"8DBD7D229437BB665DE6417747994D57", []string{`"` + strings.Repeat("a", 100) + `"`}},
		{"88042541D30C8BF90D7092B1519AE0BC", []string{`"` + strings.Repeat("a", 101) + `"`}},
		{"555B95BEDAC4B1E9EC1CDC9BB0DDDE58", []string{"0"}},
		{"3D018BB1DF3DB27235766E81FD10406E", []string{"-0"}},
		{"A0CD98B339BA78A5D0CF6953B87070B0", []string{"1"}},
		{"59938E7A936C1C5B9E3AE842BBC16839", []string{"-1"}},
		{"0E6CBA63A280927DE485DEF865800139", []string{"5E-324"}},
		{"71424D996457102634591FF245DBCC4D", []string{"1.7976931348623157E+308"}},
		{"6EDB959178DFCCA18983F89384D1629B", []string{"9223372036854775807"}},
		{"12C221C7032CED1F9E6693CE1428E6CF", []string{"9007199254740991"}},
		{"B499FD5198AE0F1EB6B77F6E428D2FF0", []string{`"/path1"`}},
		{"B499FD5198AE0F1EB6B77F6E428D2FF0E7A1848BD1102A3B65AFF266874D0FF5ECA5ABC953544CF9BD94776DA5E6EA52", []string{`"/path1"`, `"/path2"`, `"/path3"`}},
	} {
		if got, want := cosmosfeed.KeyText(tt.values...), masked(tt.want); got != want {
			t.Errorf("%.40v: %s, want %s", tt.values, got, want)
		}
	}
}

// masked clears the two top bits of each 32 digits.
func masked(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i += 32 {
		var digit int
		if _, err := fmt.Sscanf(text[i:i+1], "%X", &digit); err != nil {
			panic(err)
		}
		fmt.Fprintf(&out, "%X%s", digit&3, text[i+1:i+32])
	}
	return out.String()
}
