package cosmosfeed_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
)

// The errors of the store appear in logs and in the lease itself.
func TestErrorsUseShortLeaseNames(t *testing.T) {
	key, err := azcosmos.NewKeyCredential("a2V5")
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey("https://nowhere.invalid", key, nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := cosmosfeed.NewLeaseStore(client, "contacts", "leases")
	if err != nil {
		t.Fatal(err)
	}
	const lease, info = "feedboxhost_contacts_data..1F-2F", "feedboxhost_contacts_data.info"
	_, err = store.Replace(t.Context(), changefeed.Record{ID: lease})
	if text := err.Error(); strings.Contains(text, lease) || !strings.Contains(text, "lease "+changefeed.LeaseName(lease)) {
		t.Errorf("%q, want the lease %s", text, changefeed.LeaseName(lease))
	}
	if err := store.Delete(t.Context(), info, ""); !strings.Contains(err.Error(), info) {
		t.Errorf("%q, want the record %s", err, info)
	}
}

// In a container keyed by /partitionKey, .NET's processor may use another partition key
// than the id.
func TestRecordsWithAnotherPartitionKey(t *testing.T) {
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
		if records, err := store.List(t.Context(), "another."); err != nil || len(records) != 0 { // says nothing about the record
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

// It was there when the store was opened. A listing has no record that could be missing.
func TestDeletedLeaseContainerIsPermanent(t *testing.T) {
	srv := cosmosemu.StartT(t, nil)
	options, deleted := *srv.ClientOptions(), false
	next := options.Transport
	options.Transport = transport(func(r *http.Request) (*http.Response, error) {
		if deleted && r.Method == http.MethodPost {
			return replying(http.StatusNotFound, `{"code":"NotFound"}`)(r)
		}
		return next.Do(r)
	})
	a := connect(t, srv, srv.Endpoint(), cosmosfeed.ClientOptions(&options))
	a.create()
	store := a.leases("leases")
	if _, err := store.List(t.Context(), "p."); err != nil {
		t.Fatal(err)
	}
	deleted = true
	if _, err := store.List(t.Context(), "p."); !errors.Is(err, changefeed.ErrPermanent) {
		t.Errorf("list: %v, want a permanent error", err)
	}
}

// A record that is missing is no permanent error: another host may have deleted it.
func TestMissingRecordIsNotPermanent(t *testing.T) {
	store := newAccount(t, 1, true).leases("leases")
	_, readErr := store.Read(t.Context(), "p.one")
	_, replaceErr := store.Replace(t.Context(), changefeed.Record{ID: "p.one", ETag: "x", Body: []byte(`{"id":"p.one"}`)})
	for do, err := range map[string]error{"read": readErr, "replace": replaceErr, "delete": store.Delete(t.Context(), "p.one", "x")} {
		if !errors.Is(err, changefeed.ErrNotFound) || errors.Is(err, changefeed.ErrPermanent) {
			t.Errorf("%s: %v, want only %v", do, err, changefeed.ErrNotFound)
		}
	}
}

// A lease that another product stored under a key of its own is deleted. The lease that fills the gap has the
// same id.
func TestRecordIsCreatedAgainAfterOneWithAnotherPartitionKey(t *testing.T) {
	a := newAccount(t, 1, true)
	a.createContainer("dotnet", "/partitionKey")
	container, err := a.client.NewContainer("db", "dotnet")
	if err != nil {
		t.Fatal(err)
	}
	key := azcosmos.NewPartitionKeyString("other")
	if _, err := container.CreateItem(t.Context(), key, []byte(`{"id":"p.one","partitionKey":"other"}`), nil); err != nil {
		t.Fatal(err)
	}
	store := a.leases("dotnet")
	if _, err := store.List(t.Context(), "p."); err != nil {
		t.Fatal(err)
	}
	if _, err := container.DeleteItem(t.Context(), key, "p.one", nil); err != nil {
		t.Fatal(err)
	}
	if records, err := store.List(t.Context(), "p."); err != nil || len(records) != 0 {
		t.Fatalf("records %v, error %v", records, err)
	}
	etag, err := store.Create(t.Context(), changefeed.Record{ID: "p.one", Body: []byte(`{"id":"p.one"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), "p.one", etag); err != nil {
		t.Error(err)
	}
}

// emptyLists removes all records from the replies to queries.
type emptyLists struct{ armed atomic.Bool }

func (p *emptyLists) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err == nil && p.armed.Load() && req.Raw().Method == http.MethodPost && strings.HasSuffix(req.Raw().URL.Path, "/docs") && req.Raw().Header.Get("x-ms-documentdb-query") != "" {
		resp.Body = io.NopCloser(strings.NewReader(`{"_rid":"x","Documents":[],"_count":0}`))
	}
	return resp, err
}

// A listing that lacks a record says nothing about its owner's next write: the record is still there,
// under its key.
func TestListingThatLacksARecordDoesNotStopItsOwner(t *testing.T) {
	lists := &emptyLists{}
	a := newAccountWith(t, cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 1}), lists)
	a.createContainer("dotnet", "/partitionKey")
	container, err := a.client.NewContainer("db", "dotnet")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("other"), []byte(`{"id":"p.one","partitionKey":"other"}`), nil); err != nil {
		t.Fatal(err)
	}
	store := a.leases("dotnet")
	records, err := store.List(t.Context(), "p.")
	if err != nil || len(records) != 1 {
		t.Fatalf("records %v, error %v", records, err)
	}
	lists.armed.Store(true)
	if records, err := store.List(t.Context(), "p."); err != nil || len(records) != 0 {
		t.Fatalf("records %v, error %v", records, err)
	}
	if _, err := store.Replace(t.Context(), records[0]); err != nil {
		t.Errorf("the owner's write: %v", err)
	}
}

// A container keyed by /partitionKey needs that member, which only an object can have.
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

// slowReplies delays the reply to every replace, unless the caller cancels it.
type slowReplies struct {
	armed   atomic.Bool
	applied chan struct{}
}

func (f *slowReplies) Do(req *policy.Request) (*http.Response, error) {
	reply, err := req.Next()
	if req.Raw().Method != http.MethodPut {
		return reply, err
	}
	if f.armed.Swap(false) {
		f.applied <- struct{}{}
	}
	select {
	case <-time.After(300 * time.Millisecond):
		return reply, err
	case <-req.Raw().Context().Done():
		return nil, req.Raw().Context().Err()
	}
}

// The host stops while the SDK waits for the reply to a lease write.
func TestStopDuringLeaseWriteReleasesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &slowReplies{applied: make(chan struct{}, 1)}
		a := newAccountWith(t, cosmosemu.StartT(t, &cosmosemu.Options{Network: pipenet.New()}), far)
		feed, err := cosmosfeed.NewFeed(a.client, "db", "data")
		if err != nil {
			t.Fatal(err)
		}
		var lost, released atomic.Int32
		var got recorder
		p, err := changefeed.New(feed, a.leases("leases"), &got, &changefeed.Options{Host: "a", Observer: &changefeed.Observer{
			LeaseLost:     func(changefeed.LeaseLost) { lost.Add(1) },
			LeaseReleased: func(changefeed.LeaseReleased) { released.Add(1) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, p)
		a.put(1, 1)
		got.wait(t, 1)
		time.Sleep(3 * time.Second)
		far.armed.Store(true)
		a.put(5, 5)
		<-far.applied
		time.Sleep(100 * time.Millisecond)
		stop()
		leases, err := changefeed.NewOperator(feed, a.leases("leases"), nil).Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if lost.Load() != 0 || int(released.Load()) != len(leases) || len(leases) == 0 || leases[0].Owner != "" {
			t.Errorf("%d leases lost, %d released, want all %d released: %+v", lost.Load(), released.Load(), len(leases), leases)
		}
	})
}
