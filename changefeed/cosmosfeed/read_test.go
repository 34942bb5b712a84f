package cosmosfeed_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
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

// A truncated page is not used, and the next read returns all of it.
func TestTruncatedPageIsReadAgain(t *testing.T) {
	srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 1})
	cut := &cutting{}
	options := *srv.ClientOptions()
	options.PerRetryPolicies = append(options.PerRetryPolicies, cut)
	a := connect(t, srv, srv.Endpoint(), cosmosfeed.ClientOptions(&options))
	a.create()
	a.put(20, 5)
	feed := a.feed("data")
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
