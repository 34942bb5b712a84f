package cosmosfeed_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A page costs what was asked for it, also when the bounds of its range had to be found out.
func TestAPageCostsWhatItTook(t *testing.T) {
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

// The items of a page stay as they are until it is released.
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

// .NET's processor may keep its records under another partition key than their ids, in a
// container that has such a key.
func TestRecordsUnderAnotherPartitionKey(t *testing.T) {
	a := newAccount(t, 2, true)
	a.createContainer("dotnet", "/partitionKey")
	for name, key := range map[string]string{"dotnet": "other", "leases": "p.one"} {
		container, err := a.client.NewContainer("db", name)
		if err != nil {
			t.Fatal(err)
		}
		body := []byte(`{"id":"p.one","partitionKey":"other"}`)
		if _, err := container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), body, nil); err != nil {
			t.Fatal(err)
		}
		store := a.leases(name)
		records, err := store.List(t.Context(), "p.")
		if err != nil || len(records) != 1 {
			t.Fatalf("%s: records %v, %v", name, records, err)
		}
		record, err := store.Read(t.Context(), "p.one")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if record.ETag, err = store.Replace(t.Context(), record); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := store.Delete(t.Context(), "p.one", record.ETag); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// cutting ends the bodies of feed replies in their midst, as often as it says.
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

// A page of which a part arrived is no page, and the next try has all of it.
func TestAPageThatIsCutOffIsReadAgain(t *testing.T) {
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
		t.Errorf("error %v, want one that passes and tells why", err)
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

// A client with ClientOptions serves others as any does, feed reads of their own included.
func TestOthersMayUseTheClient(t *testing.T) {
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

// What a container keyed by /partitionKey stores has that member; what is no object cannot
// have it.
func TestRecordsGetTheirPartitionKey(t *testing.T) {
	a := newAccount(t, 1, true)
	a.createContainer("dotnet", "/partitionKey")
	store := a.leases("dotnet")
	for body, want := range map[string]string{`{"id":"a","n":1}`: `"a"`, `{"id":"a","partitionKey":"a"}`: `"a"`} {
		etag, err := store.Create(t.Context(), changefeed.Record{ID: "a", Body: []byte(body)})
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		record, err := store.Read(t.Context(), "a")
		if err != nil || !bytes.Contains(record.Body, []byte(`"partitionKey":`+want)) {
			t.Errorf("%s is stored as %s, %v", body, record.Body, err)
		}
		if err := store.Delete(t.Context(), "a", etag); err != nil {
			t.Error(err)
		}
	}
	for _, body := range []string{`[]`, `null`, `{"id"`, ``} {
		if _, err := store.Create(t.Context(), changefeed.Record{ID: "a", Body: []byte(body)}); err == nil || !strings.Contains(err.Error(), "not a JSON object") {
			t.Errorf("%q: %v", body, err)
		}
	}
}
