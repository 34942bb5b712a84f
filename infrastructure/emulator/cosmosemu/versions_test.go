package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
)

// entry is a change with its metadata.
type entry struct {
	Current  map[string]any
	Previous map[string]any
	Metadata struct {
		LSN               uint64
		CRTS              int64
		OperationType     string
		PreviousImageLSN  uint64
		TimeToLiveExpired bool
		ID                string
		PartitionKey      map[string]any
	}
}

func (e entry) String() string {
	s := fmt.Sprint(e.Metadata.LSN, " ", e.Metadata.OperationType)
	if e.Metadata.PreviousImageLSN > 0 {
		s += fmt.Sprint(" of ", e.Metadata.PreviousImageLSN)
	}
	if e.Metadata.TimeToLiveExpired {
		s += " expired"
	}
	return s
}

// versioned starts an emulator whose container keeps versions and deletions for an hour.
func versioned(t *testing.T, o *cosmosemu.Options) *cosmosemu.Server {
	t.Helper()
	if o == nil {
		o = &cosmosemu.Options{}
	}
	o.ContainerRetention = true
	srv := cosmosemu.StartT(t, o)
	if err := srv.CreateDatabase("db"); err != nil {
		t.Fatal(err)
	}
	r := send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1,"changeFeedPolicy":{"retentionDuration":60}}`, nil)
	if r.StatusCode != http.StatusCreated || !strings.Contains(r.Body, `"retentionDuration":60`) {
		t.Fatalf("%d %s", r.StatusCode, r.Body)
	}
	return srv
}

func versionsOf(t *testing.T, srv *cosmosemu.Server, rng, position string, more ...string) (entries []entry, etag string, code int) {
	t.Helper()
	headers := map[string]string{
		"A-IM": "Full-Fidelity Feed", "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15",
		"x-ms-documentdb-partitionkeyrangeid": rng, "If-None-Match": position,
	}
	for i := 0; i+1 < len(more); i += 2 {
		headers[more[i]] = more[i+1]
	}
	r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", headers)
	var page struct{ Documents []entry }
	if r.StatusCode == http.StatusOK {
		if err := json.Unmarshal([]byte(r.Body), &page); err != nil {
			t.Fatalf("%v in %s", err, r.Body)
		}
	}
	return page.Documents, r.Header.Get("etag"), r.StatusCode
}

var inA = map[string]string{"x-ms-documentdb-partitionkey": `["a"]`}

func TestAllVersionsAndDeletes(t *testing.T) {
	srv := versioned(t, nil)
	send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"id":"early","pk":"a"}`, inA)
	_, now, code := versionsOf(t, srv, "0", "*")
	if code != http.StatusNotModified || now != `"1"` {
		t.Fatalf("now: %d %s", code, now)
	}
	send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"id":"1","pk":"a","n":1}`, inA)
	send(t, srv, http.MethodPut, "dbs/db/colls/c/docs/1", `{"id":"1","pk":"a","n":2}`, inA)
	send(t, srv, http.MethodPatch, "dbs/db/colls/c/docs/1", `{"operations":[{"op":"incr","path":"/n","value":5}]}`, inA)
	send(t, srv, http.MethodDelete, "dbs/db/colls/c/docs/1", "", inA)
	got, end, _ := versionsOf(t, srv, "0", now)
	if s := fmt.Sprint(got); s != "[2 create 3 replace of 2 4 replace of 3 5 delete of 4]" {
		t.Fatal(s)
	}
	if got[0].Current["n"] != 1.0 || got[1].Current["n"] != 2.0 || got[2].Current["n"] != 7.0 || got[2].Previous != nil {
		t.Errorf("versions %+v", got)
	}
	gone := got[3]
	if len(gone.Current) != 0 || gone.Previous["n"] != 7.0 || gone.Metadata.ID != "1" || gone.Metadata.PartitionKey["pk"] != "a" || gone.Metadata.CRTS == 0 {
		t.Errorf("deletion %+v", gone)
	}
	if more, same, code := versionsOf(t, srv, "0", end); code != http.StatusNotModified || same != end || len(more) != 0 {
		t.Errorf("at the end: %d %s", code, same)
	}
	if items := feedOf(t, srv, "0"); len(items) != 1 {
		t.Errorf("the latest versions are %v", items)
	}
}

// A batch is one transaction, so all its versions are on one page, even several of one item.
func TestVersionsOfABatch(t *testing.T) {
	srv := versioned(t, nil)
	headers := map[string]string{"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", "x-ms-documentdb-partitionkey": `["a"]`}
	r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `[{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}},`+
		`{"operationType":"Upsert","resourceBody":{"id":"1","pk":"a","n":1}},{"operationType":"Create","resourceBody":{"id":"2","pk":"a"}},{"operationType":"Delete","id":"1"}]`, headers)
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", r.StatusCode, r.Body)
	}
	got, _, _ := versionsOf(t, srv, "0", `"0"`, "x-ms-max-item-count", "1")
	if s := fmt.Sprint(got); s != "[1 create 1 replace of 1 1 create 1 delete of 1]" {
		t.Error(s)
	}
}

// A position stays valid over a split, and no version is in the feeds of both children.
func TestVersionsAcrossASplit(t *testing.T) {
	srv := versioned(t, nil)
	c := containerOf(t, srv, "c")
	for i := range 20 {
		create(t, c, "x", fmt.Sprint("pk", i))
	}
	if err := srv.Split("db", "c", "0"); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := c.DeleteItem(t.Context(), key(fmt.Sprint("pk", i)), "x", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, code := versionsOf(t, srv, "0", `"3"`); code != http.StatusGone {
		t.Errorf("the parent answers %d", code)
	}
	seen := map[string]int{}
	for _, r := range live(t, srv) {
		entries, _, _ := versionsOf(t, srv, r.ID, `"5"`)
		for _, e := range entries {
			seen[e.Metadata.OperationType]++
		}
	}
	if seen["create"] != 15 || seen["delete"] != 20 {
		t.Errorf("after 5 of 20 creates and before 20 deletes: %v", seen)
	}
}

// Expiry is a deletion in the feed, and a position before the retention is refused.
func TestVersionsOfExpiryAndRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := versioned(t, &cosmosemu.Options{Network: pipenet.New()})
		send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"id":"1","pk":"a","ttl":5}`, inA)
		send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"id":"2","pk":"a","ttl":5}`, inA)
		time.Sleep(6 * time.Second)
		send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"id":"1","pk":"a"}`, inA) // before the sweep
		time.Sleep(20 * time.Second)
		got, end, _ := versionsOf(t, srv, "0", `"0"`)
		if s := fmt.Sprint(got); s != "[1 create 2 create 3 delete of 1 expired 3 create 4 delete of 2 expired]" {
			t.Error(s)
		}
		time.Sleep(59 * time.Minute)
		send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"id":"3","pk":"a"}`, inA)
		time.Sleep(2 * time.Minute)
		if _, _, code := versionsOf(t, srv, "0", `"0"`); code != http.StatusBadRequest {
			t.Errorf("a position before the retention: %d", code)
		}
		if got, _, _ := versionsOf(t, srv, "0", end); fmt.Sprint(got) != "[5 create]" {
			t.Errorf("after %s: %v", end, got)
		}
	})
}

// On the service the account enables the feed, and a container's own retention is refused.
func TestAccountEnablesAllVersions(t *testing.T) {
	const own = `{"id":"own","partitionKey":{"paths":["/pk"]},"changeFeedPolicy":{"retentionDuration":60}}`
	for _, o := range []struct {
		options cosmosemu.Options
		feed    int
	}{
		{cosmosemu.Options{}, http.StatusBadRequest},
		{cosmosemu.Options{VersionRetention: time.Hour}, http.StatusNotModified},
	} {
		srv, c := start(t, &o.options)
		if _, _, code := versionsOf(t, srv, "0", "*"); code != o.feed {
			t.Errorf("%v: the feed answers %d, want %d", o.options.VersionRetention, code, o.feed)
		}
		if r := send(t, srv, http.MethodPost, "dbs/db/colls", own, nil); r.StatusCode != http.StatusBadRequest || !strings.Contains(r.Body, "ContainerRetention") {
			t.Errorf("%v: a container's own retention: %d %s", o.options.VersionRetention, r.StatusCode, r.Body)
		}
		made := send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"v","partitionKey":{"paths":["/pk"]}}`, nil)
		if r := send(t, srv, http.MethodPut, "dbs/db/colls/v", made.Body, nil); r.StatusCode != http.StatusOK {
			t.Errorf("%v: replace: %d %s", o.options.VersionRetention, r.StatusCode, r.Body)
		}
		create(t, c, "1", "a")
		if o.feed != http.StatusNotModified {
			continue
		}
		if got, _, _ := versionsOf(t, srv, "0", `"0"`); fmt.Sprint(got) != "[1 create]" {
			t.Errorf("the feed has %v", got)
		}
		srv.Advance(2 * time.Hour)
		if _, _, code := versionsOf(t, srv, "0", `"0"`); code != http.StatusBadRequest {
			t.Errorf("a position before the retention: %d", code)
		}
	}
}

func TestVersionsNeedChangeFeedPolicy(t *testing.T) {
	srv, _ := start(t, &cosmosemu.Options{ContainerRetention: true})
	if _, _, code := versionsOf(t, srv, "0", "*"); code != http.StatusBadRequest {
		t.Errorf("a container without a policy: %d", code)
	}
	srv = versioned(t, nil)
	if _, _, code := versionsOf(t, srv, "0", ""); code != http.StatusBadRequest {
		t.Errorf("from the beginning: %d", code)
	}
	for _, format := range []string{"", "2020-01-01"} {
		if _, _, code := versionsOf(t, srv, "0", "*", "x-ms-cosmos-changefeed-wire-format-version", format); code != http.StatusBadRequest {
			t.Errorf("wire format %q: %d", format, code)
		}
	}
	r := send(t, srv, http.MethodPut, "dbs/db/colls/c", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`, nil)
	if r.StatusCode != http.StatusBadRequest {
		t.Errorf("a change of the policy: %d", r.StatusCode)
	}
}

// Java's processor reads the latest versions with their metadata.
func TestLatestVersionsWithMetadata(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	create(t, c, "1", "a")
	r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", map[string]string{"A-IM": "Incremental feed", "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15"})
	var page struct{ Documents []entry }
	if err := json.Unmarshal([]byte(r.Body), &page); err != nil || len(page.Documents) != 1 {
		t.Fatalf("%d %s (%v)", r.StatusCode, r.Body, err)
	}
	if e := page.Documents[0]; e.Current["id"] != "1" || e.Metadata.LSN != 2 || e.Metadata.CRTS == 0 {
		t.Errorf("%+v", e)
	}
}
