package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
)

func TestAccountAdvertisesTheHostThatWasCalled(t *testing.T) {
	srv := cosmosemu.StartT(t)
	r := send(t, srv, http.MethodGet, "", "", nil)
	var account struct {
		WritableLocations []struct {
			Endpoint string `json:"databaseAccountEndpoint"`
		}
		UserConsistencyPolicy struct{ DefaultConsistencyLevel string }
	}
	if err := json.Unmarshal([]byte(r.Body), &account); err != nil {
		t.Fatal(err)
	}
	if got := account.WritableLocations[0].Endpoint; got != srv.Endpoint() {
		t.Errorf("endpoint %s, want %s", got, srv.Endpoint())
	}
	if account.UserConsistencyPolicy.DefaultConsistencyLevel != "Session" {
		t.Errorf("account %s", r.Body)
	}
}

// These fields were recorded of live accounts: see the Rust SDK's driver, dynamic_topology.rs.
func TestAccountHasTheFieldsOfLiveAccounts(t *testing.T) {
	for retention, backup := range map[time.Duration]bool{0: false, time.Hour: true} {
		srv := cosmosemu.StartT(t, &cosmosemu.Options{VersionRetention: retention})
		var account map[string]any
		if err := json.Unmarshal([]byte(send(t, srv, http.MethodGet, "", "", nil).Body), &account); err != nil {
			t.Fatal(err)
		}
		if rid, _ := account["_rid"].(string); !strings.HasSuffix(rid, ".sql.cosmos.azure.com") {
			t.Errorf("_rid is %s", rid)
		}
		if account["continuousBackupEnabled"] != backup {
			t.Errorf("with a retention of %v, continuousBackupEnabled is %v", retention, account["continuousBackupEnabled"])
		}
		for _, name := range []string{"disableCrossRegionalHedging", "enableNRegionSynchronousCommit", "enablePerPartitionFailoverBehavior"} {
			if on, ok := account[name].(bool); !ok || on {
				t.Errorf("%s is %v", name, account[name])
			}
		}
	}
}

func TestEveryReplyHasTheCommonHeaders(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	for path, lsn := range map[string]string{"": "", "dbs/none": "", "dbs/db/colls/c/docs/1": "1", "dbs/db/colls/c/docs/2": "1"} {
		r := send(t, srv, http.MethodGet, path, "", map[string]string{"x-ms-documentdb-partitionkey": `["a"]`})
		for _, name := range []string{"x-ms-gatewayversion", "x-ms-serviceversion", "x-ms-number-of-read-regions", "x-ms-last-state-change-utc"} {
			if r.Header.Get(name) == "" {
				t.Errorf("GET /%s: %d has no %s", path, r.StatusCode, name)
			}
		}
		for _, name := range []string{"x-ms-cosmos-llsn", "x-ms-quorum-acked-lsn", "x-ms-cosmos-quorum-acked-llsn", "x-ms-global-committed-lsn"} {
			if got := r.Header.Get(name); got != lsn {
				t.Errorf("GET /%s: %d has the %s %q, want %q", path, r.StatusCode, name, got, lsn)
			}
		}
	}
}

// Sub-status 1003 means that a parent is missing: without it, a client would treat a missing container as
// a missing item.
func TestMissingParentHasItsSubStatus(t *testing.T) {
	srv := cosmosemu.StartT(t)
	must(t, srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}))
	for request, want := range map[string]string{
		"GET dbs/none": "404 ", "GET dbs/db/colls/none": "404 ", "DELETE dbs/none": "404 ", "GET dbs/db/colls/c/docs/none": "404 ",
		"GET dbs/none/colls": "404 1003", "GET dbs/none/colls/c": "404 1003", "GET dbs/none/colls/c/docs/1": "404 1003",
		"GET dbs/db/colls/none/docs/1": "404 1003", "GET dbs/db/colls/none/docs": "404 1003", "GET dbs/db/colls/none/pkranges": "404 1003",
		"PUT dbs/db/colls/none/docs/1": "404 1003", "POST dbs/none/colls": "404 1003", "POST dbs/db/colls/none/docs": "404 1003",
	} {
		method, path, _ := strings.Cut(request, " ")
		r := send(t, srv, method, path, `{"id":"1","pk":"a"}`, map[string]string{"x-ms-documentdb-partitionkey": `["a"]`})
		if statusOf(r) != want {
			t.Errorf("%s: %s, want %s: %s", request, statusOf(r), want, r.Body)
		}
	}
}

// On the service a container is not ready for some seconds after its creation.
func TestNewContainerIsCreatedWithDelay(t *testing.T) {
	srv := cosmosemu.StartT(t, &cosmosemu.Options{CreationDelay: time.Minute})
	must(t, srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}))
	send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"d","partitionKey":{"paths":["/pk"]}}`, nil)
	codes := func() (list []string) {
		for _, path := range []string{"c", "d", "c/docs", "d/pkranges"} {
			r := send(t, srv, http.MethodGet, "dbs/db/colls/"+path, "", nil)
			list = append(list, strings.TrimSuffix(fmt.Sprint(r.StatusCode, "/", r.Header.Get("x-ms-substatus")), "/"))
		}
		return list
	}
	if got := fmt.Sprint(codes()); got != "[404/1013 404/1013 404/1013 404/1013]" {
		t.Errorf("at once: %s", got)
	}
	srv.Advance(time.Minute)
	if got := fmt.Sprint(codes()); got != "[200 200 200 200]" {
		t.Errorf("after a minute: %s", got)
	}
}

func TestContainerKeepsItsDefinition(t *testing.T) {
	srv := cosmosemu.StartT(t)
	if err := srv.CreateDatabase("db"); err != nil {
		t.Fatal(err)
	}
	const in = `{"id":"x","partitionKey":{"paths":["/pk"]},"defaultTtl":60,"vectorEmbeddingPolicy":{"vectorEmbeddings":[]},"whatever":{"a":[1, 2]}}`
	r := send(t, srv, http.MethodPost, "dbs/db/colls", in, nil)
	for _, want := range []string{
		`"whatever":{"a":[1, 2]}`, `"vectorEmbeddingPolicy":{"vectorEmbeddings":[]}`, `"kind":"Hash"`, `"indexingPolicy"`, `"_rid"`,
		`"conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""}`, `"geospatialConfig":{"type":"Geography"}`,
	} {
		if r.StatusCode != http.StatusCreated || !strings.Contains(r.Body, want) {
			t.Errorf("create: %d, %s lacks %s", r.StatusCode, r.Body, want)
		}
	}
	changed := strings.NewReplacer(`"defaultTtl":60`, `"defaultTtl":-1`, `"Geography"`, `"Geometry"`).Replace(r.Body)
	back := send(t, srv, http.MethodPut, "dbs/db/colls/x", changed, nil)
	if back.StatusCode != http.StatusOK || !strings.Contains(back.Body, `"defaultTtl":-1`) || strings.Count(back.Body, `"_rid"`) != 1 ||
		strings.Count(back.Body, `"geospatialConfig"`) != 1 || !strings.Contains(back.Body, `"Geometry"`) {
		t.Errorf("replace: %d %s", back.StatusCode, back.Body)
	}
	for name, body := range map[string]string{
		"another key":      `{"id":"x","partitionKey":{"paths":["/other"]}}`,
		"another id":       `{"id":"y","partitionKey":{"paths":["/pk"]}}`,
		"no partition key": `{"id":"x"}`,
		"ttl 0":            `{"id":"x","partitionKey":{"paths":["/pk"]},"defaultTtl":0}`,
		"unique keys":      `{"id":"x","partitionKey":{"paths":["/pk"]},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]}}`,
		"a range key":      `{"id":"x","partitionKey":{"paths":["/pk"],"kind":"Range"}}`,
	} {
		if r := send(t, srv, http.MethodPut, "dbs/db/colls/x", body, nil); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.Body)
		}
	}
	if r := send(t, srv, http.MethodPost, "dbs/db/colls", in, nil); r.StatusCode != http.StatusConflict {
		t.Errorf("create again: %d", r.StatusCode)
	}
	if r := send(t, srv, http.MethodGet, "dbs/db/sprocs", "", nil); r.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(r.Body, "UNSUPPORTED") {
		t.Errorf("an unknown resource: %d %s", r.StatusCode, r.Body)
	}
}

func TestKeyVersionOneIsWrittenOnlyIfItWasGiven(t *testing.T) {
	srv := cosmosemu.StartT(t)
	must(t, srv.CreateDatabase("db"))
	for i, c := range []struct{ given, want string }{
		{``, ``},
		{`,"version":1`, `"version":1`},
		{`,"version":2`, `"version":2`},
		{`,"kind":"MultiHash"`, `"version":2`}, // a hierarchical key has no version 1
	} {
		id, given, want := fmt.Sprint("c", i), c.given, c.want
		made := send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"`+id+`","partitionKey":{"paths":["/pk"]`+given+`}}`, nil)
		back := send(t, srv, http.MethodPut, "dbs/db/colls/"+id, strings.Replace(made.Body, `"id"`, `"defaultTtl":60,"id"`, 1), nil)
		for _, r := range []answer{made, back, send(t, srv, http.MethodGet, "dbs/db/colls/"+id, "", nil)} {
			if r.StatusCode >= http.StatusBadRequest || strings.Contains(r.Body, `"version"`) != (want != "") || !strings.Contains(r.Body, want) {
				t.Errorf("with %q: %d %s", given, r.StatusCode, r.Body)
			}
		}
	}
}

func TestReplaceWithoutKeyVersionKeepsIt(t *testing.T) {
	srv := cosmosemu.StartT(t)
	must(t, srv.CreateDatabase("db"))
	send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"x","partitionKey":{"paths":["/pk"],"version":2}}`, nil)
	r := send(t, srv, http.MethodPut, "dbs/db/colls/x", `{"id":"x","partitionKey":{"paths":["/pk"]},"defaultTtl":60}`, nil)
	if r.StatusCode != http.StatusOK || !strings.Contains(r.Body, `"version":2`) {
		t.Errorf("%d %s", r.StatusCode, r.Body)
	}
}

func TestIndexingPolicyIsAutomatic(t *testing.T) {
	srv := cosmosemu.StartT(t)
	must(t, srv.CreateDatabase("db"))
	for i, c := range []struct{ policy, want string }{
		{`{"indexingMode":"consistent"}`, `{"automatic":true,"indexingMode":"consistent"}`},
		{`{}`, `{"automatic":true}`},
		{`{"automatic":false,"indexingMode":"consistent"}`, `{"automatic":true,"indexingMode":"consistent"}`},
		{`{"automatic":false,"indexingMode":"none"}`, `{"automatic":false,"indexingMode":"none"}`},
		{`{"indexingMode":"none"}`, `{"indexingMode":"none"}`},
		{`null`, `"automatic":true,"includedPaths":[{"path":"/*"}]`},
	} {
		r := send(t, srv, http.MethodPost, "dbs/db/colls", fmt.Sprintf(`{"id":"c%d","partitionKey":{"paths":["/pk"]},"indexingPolicy":%s}`, i, c.policy), nil)
		if r.StatusCode != http.StatusCreated || !strings.Contains(r.Body, c.want) || strings.Count(r.Body, `"indexingPolicy"`) != 1 {
			t.Errorf("%s: %d, %s lacks %s", c.policy, r.StatusCode, r.Body, c.want)
		}
	}
}

func TestRecreatedContainerIsEmptyAndHasANewResourceID(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	before, err := c.Read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	_, err = c.ReadItem(t.Context(), key("a"), "1", nil)
	wantStatus(t, "read in a deleted container", err, http.StatusNotFound)
	for range 2 { // the helper is idempotent
		if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}); err != nil {
			t.Fatal(err)
		}
	}
	after, err := c.Read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if after.ContainerProperties.ResourceID == before.ContainerProperties.ResourceID || len(after.ContainerProperties.ResourceID) < 8 {
		t.Errorf("resource id %s, was %s", after.ContainerProperties.ResourceID, before.ContainerProperties.ResourceID)
	}
	if n := count(t, c, "SELECT * FROM c"); n != 0 {
		t.Errorf("%d items in the new container", n)
	}
	db, err := srv.Client().NewDatabase("db")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	_, err = db.Read(t.Context(), nil)
	wantStatus(t, "read of a deleted database", err, http.StatusNotFound)
}

// databaseWithThroughput creates the database db with 400 RU/s.
func databaseWithThroughput(t *testing.T, srv *cosmosemu.Server) *azcosmos.DatabaseClient {
	t.Helper()
	throughput := azcosmos.NewManualThroughputProperties(400)
	client := srv.Client()
	if _, err := client.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "db"}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &throughput}); err != nil {
		t.Fatal(err)
	}
	db, err := client.NewDatabase("db")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestOffers(t *testing.T) {
	srv := cosmosemu.StartT(t)
	db := databaseWithThroughput(t, srv)
	if _, err := db.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(700), nil); err != nil {
		t.Fatal(err)
	}
	r, err := db.ReadThroughput(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := r.ThroughputProperties.ManualThroughput(); !ok || n != 700 {
		t.Errorf("throughput %d", n)
	}
	if _, err := db.CreateContainer(t.Context(), azcosmos.ContainerProperties{ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}}, nil); err != nil {
		t.Fatal(err)
	}
	_, err = containerOf(t, srv, "c").ReadThroughput(t.Context(), nil)
	wantStatus(t, "throughput of a container without", err, http.StatusNotFound)
}

// TestChangesOfMetadataCheckTheETag: a stale If-Match refuses the change of a throughput and the
// deletion of a container or a database.
func TestChangesOfMetadataCheckTheETag(t *testing.T) {
	srv := cosmosemu.StartT(t)
	db := databaseWithThroughput(t, srv)
	read, err := db.ReadThroughput(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ifRead := &azcosmos.ThroughputOptions{IfMatchEtag: &read.ETag}
	if _, err := db.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(500), ifRead); err != nil {
		t.Error(err)
	}
	_, err = db.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(600), ifRead)
	wantStatus(t, "throughput over another", err, http.StatusPreconditionFailed)
	stale := map[string]string{"If-Match": `"stale"`}
	send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"]}}`, nil)
	if r := send(t, srv, http.MethodDelete, "dbs/db/colls/c", "", stale); r.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("deletion of another container: %d", r.StatusCode)
	}
	_, err = db.Delete(t.Context(), &azcosmos.DeleteDatabaseOptions{IfMatchEtag: &read.ETag})
	wantStatus(t, "deletion of another database", err, http.StatusPreconditionFailed)
	info, err := db.Read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Delete(t.Context(), &azcosmos.DeleteDatabaseOptions{IfMatchEtag: &info.ETag}); err != nil {
		t.Error(err)
	}
}

// TestAutoscaleIsNotReplacedByManualThroughput: the service needs a migration for it, which no
// SDK offers.
func TestAutoscaleIsNotReplacedByManualThroughput(t *testing.T) {
	srv := cosmosemu.StartT(t)
	throughput := azcosmos.NewAutoscaleThroughputProperties(4000)
	if _, err := srv.Client().CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "db"}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &throughput}); err != nil {
		t.Fatal(err)
	}
	db, err := srv.Client().NewDatabase("db")
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(400), nil)
	wantStatus(t, "manual throughput", err, http.StatusBadRequest)
	if _, err := db.ReplaceThroughput(t.Context(), azcosmos.NewAutoscaleThroughputProperties(5000), nil); err != nil {
		t.Error(err)
	}
	r, err := db.ReadThroughput(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := r.ThroughputProperties.AutoscaleMaxThroughput(); !ok || n != 5000 {
		t.Errorf("autoscale %d, %v", n, ok)
	}
}

func TestAllInvalidOptionsAreReported(t *testing.T) {
	_, err := cosmosemu.Start(&cosmosemu.Options{Key: "?", Partitions: 999, Consistency: "Perfect", Host: "nowhere"})
	for _, want := range []string{"Key", "Partitions", "Consistency", "Host"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not mention %s", err, want)
		}
	}
}

func TestItemsAndDump(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	create(t, c, "2", "b")
	items, err := srv.Items("db", "c")
	if err != nil || len(items) != 2 || !strings.Contains(string(items[1]), `"id":"2"`) {
		t.Errorf("items %s (%v)", items, err)
	}
	var out strings.Builder
	if err := srv.Dump(&out); err != nil || !strings.Contains(out.String(), "db/c: 2 items\n  range 0 [,FF) of [], LSN 2\n") {
		t.Errorf("dump (%v)\n%s", err, out.String())
	}
	if _, err := srv.Items("db", "none"); err == nil {
		t.Error("items of no container")
	}
}
