package cosmosemu_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
)

// value returns the member v of an item, or the status of its read.
func value(t *testing.T, c *azcosmos.ContainerClient, id string) string {
	t.Helper()
	r, err := c.ReadItem(t.Context(), key("a"), id, nil)
	if err != nil {
		return fmt.Sprint(status(err))
	}
	var body struct{ V string }
	if err := json.Unmarshal(r.Value, &body); err != nil {
		t.Fatal(err)
	}
	return body.V
}

// put writes the member v of an item and returns the ETag and the session token.
func put(t *testing.T, c *azcosmos.ContainerClient, id, v string) (azcore.ETag, string) {
	t.Helper()
	r, err := c.UpsertItem(t.Context(), key("a"), doc(id, "a", "v", v), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.ETag, *r.SessionToken
}

// page reads one page of the change feed and returns its ids, ETag, status and session token.
func page(t *testing.T, c *azcosmos.ContainerClient, token *string) (got []string, session string) {
	t.Helper()
	o := &azcosmos.ChangeFeedOptions{FeedRange: everything}
	if *token != "" {
		o = &azcosmos.ChangeFeedOptions{Continuation: token}
	}
	r, err := c.ReadChangeFeed(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	*token = r.ContinuationToken
	for _, raw := range r.Items {
		var d struct {
			ID  string
			LSN int `json:"_lsn"`
		}
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(d.ID, "@", d.LSN))
	}
	return got, r.RawResponse.Header.Get("x-ms-session-token")
}

func TestLostWritesReturnDocumentsToTheirEarlierState(t *testing.T) {
	dir := t.TempDir()
	srv, err := cosmosemu.Start(&cosmosemu.Options{KeepWrites: true, DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}, DefaultTTL: -1}); err != nil {
		t.Fatal(err)
	}
	c := containerOf(t, srv, "c")
	put(t, c, "changed", "before")                // LSN 1
	put(t, c, "deleted", "before")                // 2
	put(t, c, "kept", "before")                   // 3
	earlier, _ := put(t, c, "changed", "earlier") // 4
	token := ""
	page(t, c, &token)
	put(t, c, "changed", "lost") // 5
	if _, err := c.DeleteItem(t.Context(), key("a"), "deleted", nil); err != nil {
		t.Fatal(err) // 6
	}
	put(t, c, "changed", "lost too")        // 7
	lost, ahead := put(t, c, "new", "lost") // 8
	put(t, c, "deleted", "created again")   // 9
	put(t, c, "deleted", "and again")       // 10
	page(t, c, &token)                      // a reader that is ahead
	for range 2 {                           // before and after a restart
		if err := srv.LoseWrites("db", "c", "0", 10); err == nil {
			t.Error("a loss of nothing is accepted")
		}
		if live(t, srv)[0].LSN == 10 {
			if err := srv.LoseWrites("db", "c", "0", 4); err != nil {
				t.Fatal(err)
			}
		}
		for id, want := range map[string]string{"changed": "earlier", "deleted": "before", "kept": "before", "new": "404"} {
			if got := value(t, c, id); got != want {
				t.Errorf("%s is %q, want %q", id, got, want)
			}
		}
		if r, err := c.ReadItem(t.Context(), key("a"), "changed", nil); err != nil || r.ETag != earlier {
			t.Errorf("the ETag is %s, %v; want the earlier one, %s", r.ETag, err, earlier)
		}
		if n := count(t, c, "select * from c"); n != 3 {
			t.Errorf("a query finds %d documents, want 3", n)
		}
		again := token
		if got, session := page(t, c, &again); len(got) != 0 || session != "0:1#4" || again != token {
			t.Errorf("a position ahead of the end: changes %v, session token %q; want none and the last LSN, 4; position\n%s\nof\n%s", got, session, again, token)
		}
		_, err := c.ReadItem(t.Context(), key("a"), "kept", &azcosmos.ItemOptions{SessionToken: &ahead})
		wantStatus(t, "a session token ahead of the end", err, 404)
		start := ""
		if got, _ := page(t, c, &start); fmt.Sprint(got) != "[deleted@2 kept@3 changed@4]" {
			t.Errorf("the feed has %v", got)
		}
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
		if srv, err = cosmosemu.Start(&cosmosemu.Options{DataDir: dir}); err != nil {
			t.Fatal(err)
		}
		c = containerOf(t, srv, "c")
	}
	if etag, session := put(t, c, "new", "after"); session != "0:1#5" || etag == lost {
		t.Errorf("the next write has the session token %s and the ETag %s; want the next LSN, 5, and another ETag than a lost write", session, etag)
	}
	// A second failover. The lost write with the ETag must not match.
	for n := 6; n <= 8; n++ {
		put(t, c, "new", "again")
	}
	if _, err := c.ReplaceItem(t.Context(), key("a"), "new", doc("new", "a"), &azcosmos.ItemOptions{IfMatchEtag: &lost}); status(err) != 412 {
		t.Errorf("the ETag of a lost write: %v, want 412", err)
	}
	if err := srv.LoseWrites("db", "c", "0", 5); err != nil || value(t, c, "new") != "after" {
		t.Errorf("a second failover: %v, %s", err, value(t, c, "new"))
	}
	if _, session := put(t, c, "new", "x"); session != "0:2#6" {
		t.Errorf("session token %s after the second failover, want version 2", session)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLossesThatAreNotSupportedAreRefused(t *testing.T) {
	srv, c := start(t, &cosmosemu.Options{KeepWrites: true})
	for i := range 4 {
		create(t, c, fmt.Sprint(i), fmt.Sprint("pk", i))
	}
	if err := srv.Split("db", "c", "0"); err != nil {
		t.Fatal(err)
	}
	for i := 4; i < 20; i++ {
		create(t, c, fmt.Sprint(i), fmt.Sprint("pk", i))
	}
	plain, _ := start(t, nil)
	for says, err := range map[string]error{
		"since its creation": srv.LoseWrites("db", "c", "1", 3), // before the split
		"gone":               srv.LoseWrites("db", "c", "0", 3),
		"KeepWrites":         plain.LoseWrites("db", "c", "0", 0),
		"not found":          srv.LoseWrites("db", "other", "0", 0),
		"is not being":       srv.EndRestore("db", "c"),
		"one region":         srv.FailOver("Mars"),
		"accepts the writes": srv.RemoveRegion("South Central US"),
	} {
		if says == "one region" {
			says = "South Central US"
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want a refusal with %q", err, says)
		}
	}
	if err := srv.LoseWrites("db", "c", "1", 4); err != nil {
		t.Errorf("all writes since the split: %v", err)
	}
	if _, err := cosmosemu.Start(&cosmosemu.Options{KeepWrites: true, StaleReads: time.Second}); err == nil {
		t.Error("KeepWrites with StaleReads is accepted")
	}
}

func TestUniqueKeysFollowLostWrites(t *testing.T) {
	srv, _ := start(t, &cosmosemu.Options{KeepWrites: true})
	db, err := srv.Client().NewDatabase("db")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.CreateContainer(t.Context(), azcosmos.ContainerProperties{
		ID: "unique", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
		UniqueKeyPolicy: &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/v"}}}},
	}, nil); err != nil {
		t.Fatal(err)
	}
	c := containerOf(t, srv, "unique")
	put(t, c, "1", "first")
	put(t, c, "1", "second")
	put(t, c, "2", "first")
	if err := srv.LoseWrites("db", "unique", "0", 1); err != nil {
		t.Fatal(err)
	}
	_, err = c.UpsertItem(t.Context(), key("a"), doc("3", "a", "v", "first"), nil)
	wantStatus(t, "a value that is in use again", err, 409)
	put(t, c, "3", "second")
}

func TestRestoredContainerHasItsDocumentsButNotTheirChanges(t *testing.T) {
	dir := t.TempDir()
	srv, err := cosmosemu.Start(&cosmosemu.Options{KeepWrites: true, DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}); err != nil {
		t.Fatal(err)
	}
	c := containerOf(t, srv, "c")
	etag, _ := put(t, c, "1", "before")
	put(t, c, "2", "before")
	before, err := c.Read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	time.Sleep(2 * time.Millisecond)
	put(t, c, "1", "after")
	_, ahead := put(t, c, "3", "after")
	token := ""
	page(t, c, &token)
	if err := srv.BeginRestore("db", "c", at); err != nil {
		t.Fatal(err)
	}
	for range 2 { // before and after a restart
		_, err = c.ReadItem(t.Context(), key("a"), "1", nil)
		wantStatus(t, "read while it is restored", err, 404)
		_, err = c.UpsertItem(t.Context(), key("a"), doc("1", "a"), nil)
		wantStatus(t, "write while it is restored", err, 404)
		_, err = c.Read(t.Context(), nil)
		wantStatus(t, "read of the container while it is restored", err, 404)
		if err := srv.BeginRestore("db", "c", at); err == nil {
			t.Error("a second restore at the same time is accepted")
		}
		if err := srv.Dump(io.Discard); err != nil {
			t.Error(err)
		}
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
		if srv, err = cosmosemu.Start(&cosmosemu.Options{DataDir: dir}); err != nil {
			t.Fatal(err)
		}
		c = containerOf(t, srv, "c")
	}
	if err := srv.EndRestore("db", "c"); err != nil {
		t.Fatal(err)
	}
	after, err := c.Read(t.Context(), nil)
	if err != nil || after.ContainerProperties.ResourceID != before.ContainerProperties.ResourceID {
		t.Errorf("the resource id is %v, %v", after.ContainerProperties, err)
	}
	if r, err := c.ReadItem(t.Context(), key("a"), "1", nil); err != nil || r.ETag != etag || value(t, c, "1") != "before" {
		t.Errorf("the document is %s with the ETag %s, %v; want it as before, with %s", r.Value, r.ETag, err, etag)
	}
	if got := value(t, c, "3") + value(t, c, "2"); got != "404before" {
		t.Errorf("the others are %s", got)
	}
	if n := count(t, c, "select * from c"); n != 2 {
		t.Errorf("a query finds %d documents, want 2", n)
	}
	if got, session := page(t, c, &token); len(got) != 0 || session != "0:-1#0" {
		t.Errorf("a position of the earlier container: %v, %s; want nothing and LSN 0", got, session)
	}
	_, err = c.ReadItem(t.Context(), key("a"), "1", &azcosmos.ItemOptions{SessionToken: &ahead})
	wantStatus(t, "a session token of the earlier container", err, 404)
	put(t, c, "1", "changed")
	put(t, c, "4", "new")
	for i := range 2 { // before and after a restart
		start := ""
		if got, _ := page(t, c, &start); fmt.Sprint(got) != "[1@1 4@2]" {
			t.Errorf("%d: the feed has %v, want the changes since the restore", i, got)
		}
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
		if srv, err = cosmosemu.Start(&cosmosemu.Options{DataDir: dir}); err != nil {
			t.Fatal(err)
		}
		c = containerOf(t, srv, "c")
	}
	// A split of a restored partition keeps its documents, and a second restore goes back further.
	if err := srv.Split("db", "c", "0"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, c, "select * from c"); n != 3 {
		t.Errorf("a query finds %d documents after the split, want 3", n)
	}
	if err := errors.Join(srv.BeginRestore("db", "c", at), srv.EndRestore("db", "c")); err != nil || value(t, c, "1") != "before" || value(t, c, "4") != "404" {
		t.Errorf("a second restore: %v, %s, %s", err, value(t, c, "1"), value(t, c, "4"))
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
}

// The SDK retries a refused write each second, and reads the account again.
func TestWritesMoveToAnotherRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, c := start(t, &cosmosemu.Options{Regions: []string{"West US", "East US"}, Network: pipenet.New()})
		put(t, c, "1", "before")
		if err := srv.FailOver("East US"); err != nil {
			t.Fatal(err)
		}
		r := sendTo(t, srv, srv.RegionEndpoint("West US"), http.MethodPost, "dbs/db/colls/c/docs", `{"id":"2","pk":"a"}`, inA)
		if statusOf(r) != "403 3" {
			t.Errorf("a write in the earlier region: %s, want 403 3", statusOf(r))
		}
		var east atomic.Int32
		srv.Control(cosmosemu.OpUpsertItem, cosmosemu.When(cosmosemu.Call{Region: "East US"}, func(*cosmosemu.Call) *cosmosemu.Fault { east.Add(1); return nil }))
		done := make(chan error, 1)
		go func() {
			_, err := c.UpsertItem(t.Context(), key("a"), doc("1", "a", "v", "after"), nil)
			done <- err
		}()
		time.Sleep(30 * time.Second)
		if len(done) > 0 || east.Load() > 0 {
			t.Fatalf("the write ended before the account lists the new region: %v", <-done)
		}
		if got := value(t, c, "1"); got != "before" {
			t.Errorf("a read in the earlier region: %s", got)
		}
		srv.AdvertiseRegions()
		if err := <-done; err != nil || east.Load() != 1 {
			t.Errorf("%v, %d writes in the new region", err, east.Load())
		}
		if err := srv.RemoveRegion("West US"); err != nil {
			t.Fatal(err)
		}
		r = sendTo(t, srv, srv.RegionEndpoint("West US"), http.MethodGet, "dbs/db/colls/c/docs/1", "", inA)
		if statusOf(r) != "403 1008" {
			t.Errorf("a read in the removed region: %s, want 403 1008", statusOf(r))
		}
		if err := srv.FailOver("West US"); err == nil {
			t.Error("a failover to the removed region is accepted")
		}
		if got := value(t, c, "1"); got != "after" {
			t.Errorf("a read after the removal: %s", got)
		}
	})
}

func TestFailoverControlsOverHTTP(t *testing.T) {
	srv, c := start(t, &cosmosemu.Options{KeepWrites: true, Regions: []string{"West US", "East US"}})
	put(t, c, "1", "before")
	put(t, c, "1", "after")
	for _, call := range []struct {
		path, body string
		want       int
	}{
		{"dbs/db/colls/c/lose", `{"range":"0","lsn":7}`, 400},
		{"dbs/db/colls/c/lose", `{"range":"0","lsn":1}`, 200},
		{"dbs/db/colls/c/restore/end", `{}`, 404},
		{"dbs/db/colls/c/restore", `{"agoMs":-60000}`, 200},
		{"dbs/db/colls/c/lose", `{"range":"0","lsn":1}`, 404},
		{"dbs/db/colls/c/restore/end", `{}`, 200},
		{"regions/remove", `{"region":"West US"}`, 400},
		{"regions/failover", `{"region":"East US"}`, 200},
		{"regions/remove", `{"region":"West US"}`, 200},
		{"regions/advertise", `{}`, 200},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.ControlEndpoint()+call.path, strings.NewReader(call.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := srv.HTTPClient().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != call.want {
			t.Errorf("%s %s: %d %s, %v; want %d", call.path, call.body, resp.StatusCode, text, err, call.want)
		}
	}
	if got := value(t, c, "1"); got != "before" {
		t.Errorf("the document is %s, want it before the lost write", got)
	}
}

// A lost write frees its position for a write of another item. The position was remembered by a read.
func TestReadAfterLostWritesFindsNoOtherItem(t *testing.T) {
	srv := cosmosemu.StartT(t, &cosmosemu.Options{KeepWrites: true})
	must(t, srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}))
	c := containerOf(t, srv, "c")
	put(t, c, "lost", "1")
	if got := value(t, c, "lost"); got != "1" {
		t.Fatal(got)
	}
	must(t, srv.LoseWrites("db", "c", "0", 0))
	put(t, c, "other", "2")
	if lost, other := value(t, c, "lost"), value(t, c, "other"); lost != "404" || other != "2" {
		t.Errorf("the lost item is %s and the other one is %s, want 404 and 2", lost, other)
	}
	put(t, c, "lost", "3")
	if got := value(t, c, "lost"); got != "3" {
		t.Errorf("the item that was written again is %s, want 3", got)
	}
}
