package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// These tests check expectations of Microsoft's own tests of the .NET SDK. Each names its source.

// withHeaders returns headers with more names and values.
func withHeaders(headers map[string]string, more ...string) map[string]string {
	out := maps.Clone(headers)
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// idsOf returns the ids of a page of items or rows.
func idsOf(t *testing.T, r answer) (ids []string) {
	t.Helper()
	var page struct{ Documents []struct{ ID string } }
	if err := json.Unmarshal([]byte(r.Body), &page); err != nil {
		t.Fatalf("%d %s: %v", r.StatusCode, r.Body, err)
	}
	for _, d := range page.Documents {
		ids = append(ids, d.ID)
	}
	return ids
}

// CosmosReadFeedTests.
func TestItemsAreReadInReverse(t *testing.T) {
	srv, c := start(t, nil)
	for i := range 5 {
		create(t, c, fmt.Sprint(i), "a")
	}
	for _, name := range []string{"Reverse", "2"} {
		headers := withHeaders(inA, "x-ms-enumeration-direction", name, "x-ms-max-item-count", "2")
		var pages []string
		for {
			r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", headers)
			pages = append(pages, fmt.Sprint(idsOf(t, r)))
			token := r.Header.Get("x-ms-continuation")
			if token == "" {
				break
			}
			headers["x-ms-continuation"] = token
			if len(pages) == 1 { // a token of one direction is invalid in the other
				forward := withHeaders(headers, "x-ms-enumeration-direction", "Forward")
				if r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", forward); r.StatusCode != http.StatusBadRequest {
					t.Errorf("the token was accepted forward: %d", r.StatusCode)
				}
			}
		}
		if got := strings.Join(pages, ""); got != "[4 3][2 1][0]" {
			t.Errorf("%s: %s", name, got)
		}
	}
	r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", withHeaders(inA, "x-ms-enumeration-direction", "Reverse", "A-IM", "Incremental Feed"))
	if r.StatusCode != http.StatusBadRequest {
		t.Errorf("a change feed in reverse: %d", r.StatusCode)
	}
}

// CosmosItemTests.ValidateMaxItemCountOnItemQuery: a full last page of one logical
// partition has no continuation.
func TestFullLastPageOfPartitionHasNoContinuation(t *testing.T) {
	srv, _ := start(t, nil)
	for i := range 4 {
		send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", fmt.Sprintf(`{"id":"%d","pk":"a","l":[1,2]}`, i), inA)
	}
	for sql, want := range map[string]string{
		`SELECT * FROM c`:                   "[0 1][2 3]",
		`SELECT * FROM c WHERE c.id != '3'`: "[0 1][2]",
		`SELECT * FROM c WHERE c.id < '2'`:  "[0 1]",
		`SELECT c.id FROM c JOIN x IN c.l`:  "[0 0][1 1][2 2][3 3]",
	} {
		headers := withHeaders(inA, "x-ms-documentdb-query", "True", "x-ms-max-item-count", "2")
		got := ""
		for {
			body, _ := json.Marshal(map[string]string{"query": sql}) // strings never fail
			r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", string(body), headers)
			got += fmt.Sprint(idsOf(t, r))
			if headers["x-ms-continuation"] = r.Header.Get("x-ms-continuation"); headers["x-ms-continuation"] == "" {
				break
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}

// CosmosItemTests with AZURE_COSMOS_BINARY_ENCODING_ENABLED.
func TestBinaryDocuments(t *testing.T) {
	srv, _ := start(t, nil)
	doc := "\x80\xea\x0b\x2c\x81x\x82pk\x81a\x81n\x05"
	r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", doc, withHeaders(inA, "x-ms-cosmos-supported-serialization-formats", "CosmosBinary"))
	if r.StatusCode != http.StatusCreated || !strings.HasPrefix(r.Body, "\x80") || r.Header.Get("Content-Type") == "application/json" {
		t.Fatalf("create: %d %q", r.StatusCode, r.Body)
	}
	for formats, binary := range map[string]bool{"CosmosBinary": true, "JsonText, CosmosBinary": false, "": false} {
		r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs/x", "", withHeaders(inA, "x-ms-cosmos-supported-serialization-formats", formats))
		if r.StatusCode != http.StatusOK || strings.HasPrefix(r.Body, "\x80") != binary || !binary && !strings.Contains(r.Body, `"n":5`) {
			t.Errorf("read as %q: %d %q", formats, r.StatusCode, r.Body)
		}
	}
	for _, c := range []struct {
		method, name, body string
		binary             bool
	}{
		{http.MethodGet, "x-ms-documentdb-content-serialization-format", "", true},
		{http.MethodGet, "x-ms-cosmos-supported-serialization-formats", "", false},
		{http.MethodPost, "x-ms-cosmos-supported-serialization-formats", `{"query":"SELECT * FROM c"}`, true},
	} {
		r := send(t, srv, c.method, "dbs/db/colls/c/docs", c.body, withHeaders(inA, c.name, "CosmosBinary", "x-ms-documentdb-query", "True"))
		if r.StatusCode != http.StatusOK || strings.HasPrefix(r.Body, "\x80") != c.binary {
			t.Errorf("%s of a feed with %s: %d %q", c.method, c.name, r.StatusCode, r.Body)
		}
	}
	if r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", doc[:9], inA); r.StatusCode != http.StatusBadRequest {
		t.Errorf("a document cut short: %d", r.StatusCode)
	}
}

// NonPartitionedContainerHelper: a container of a client before version 2018-12-31.
func TestContainerWithoutAPartitionKey(t *testing.T) {
	srv, _ := start(t, nil)
	r := send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"old"}`, map[string]string{"x-ms-version": "2018-09-17"})
	if r.StatusCode != http.StatusCreated || !strings.Contains(r.Body, `"partitionKey":{"paths":["/_partitionKey"],"kind":"Hash","systemKey":true}`) {
		t.Fatalf("%d %s", r.StatusCode, r.Body)
	}
	if r := send(t, srv, http.MethodPost, "dbs/db/colls/old/docs", `{"id":"1"}`, nil); r.StatusCode != http.StatusCreated {
		t.Errorf("create without a key: %d %s", r.StatusCode, r.Body)
	}
	for _, key := range []string{"", "[]", "[{}]"} {
		headers := map[string]string{}
		if key != "" {
			headers["x-ms-documentdb-partitionkey"] = key
		}
		if r := send(t, srv, http.MethodGet, "dbs/db/colls/old/docs/1", "", headers); r.StatusCode != http.StatusOK {
			t.Errorf("read with the key %q: %d %s", key, r.StatusCode, r.Body)
		}
	}
	if r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs/1", "", nil); r.StatusCode != http.StatusBadRequest {
		t.Errorf("read without a key of a container that has one: %d", r.StatusCode)
	}
}

// BatchSinglePartitionKeyTests: session tokens, unchanged items, a response too large.
func TestDotnetBatchReplies(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	batch := withHeaders(inA, "x-ms-cosmos-is-batch-request", "True", "x-ms-cosmos-batch-atomic", "True")
	etag := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs/1", "", inA).Header.Get("ETag")
	read := `[{"operationType":"Read","id":"1"},{"operationType":"Read","id":"1","ifMatch":` + fmt.Sprintf("%q", etag) + `}]`
	if r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", read, batch); r.StatusCode != http.StatusMultiStatus || !strings.Contains(r.Body, `"statusCode":200`) || !strings.Contains(r.Body, `"statusCode":304`) {
		t.Errorf("a read of an unchanged item: %d %s", r.StatusCode, r.Body)
	}
	if r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", read, withHeaders(batch, "x-ms-session-token", "0:-1#99")); statusOf(r) != "404 1002" {
		t.Errorf("reads ahead of their session: %s", statusOf(r))
	}
	write := `[{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}}]`
	r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", write, withHeaders(batch, "x-ms-session-token", "0:-1#99"))
	if r.StatusCode != http.StatusMultiStatus || r.Header.Get("x-ms-session-token") != "0:-1#1" || r.Header.Get("x-ms-content-path") != "" {
		t.Errorf("a conflict: %d %v", r.StatusCode, r.Header)
	}
	big := `{"id":"big","pk":"a","s":"` + strings.Repeat("x", 1<<20) + `"}`
	send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", big, inA)
	reads := "[" + strings.TrimSuffix(strings.Repeat(`{"operationType":"Read","id":"big"},`, 5), ",") + "]"
	if r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", reads, batch); strings.Count(r.Body, `"statusCode":424`) != 4 || !strings.Contains(r.Body[strings.LastIndex(r.Body, "{"):], `"statusCode":413`) {
		t.Errorf("a response too large: %d %s", r.StatusCode, r.Body)
	}
}

// CosmosItemTests, CosmosItemSessionTokenTests, CosmosContainerTests: headers and messages.
func TestDotnetItemReplies(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	has := func(what string, r answer, want int, parts ...string) {
		t.Helper()
		text := r.Body + " " + r.Header.Get("x-ms-session-token") + " " + r.Header.Get("x-ms-resource-quota") + " " + r.Header.Get("x-ms-resource-usage")
		for _, part := range parts {
			if r.StatusCode != want || !strings.Contains(text, part) {
				t.Errorf("%s: %d %s, want %d with %q", what, r.StatusCode, text, want, part)
			}
		}
	}
	docs := "dbs/db/colls/c/docs"
	has("a 404", send(t, srv, http.MethodGet, docs+"/none", "", inA), 404, "0:-1#1", "Resource Not Found")
	has("a 409", send(t, srv, http.MethodPost, docs, `{"id":"1","pk":"a"}`, inA), 409, "0:-1#1")
	has("a 412", send(t, srv, http.MethodPut, docs+"/1", `{"id":"1","pk":"a"}`, withHeaders(inA, "If-Match", `"no"`)), 412, "One of the specified pre-condition is not met")
	has("quota", send(t, srv, http.MethodGet, docs+"/1", "", inA), 200, "documentsCount=-1; documentsCount=-1;")
	has("nothing to replace", send(t, srv, http.MethodPut, docs+"/none", `{"id":"none","pk":"b"}`, inA), 404, "Resource Not Found")
	has("a replacement of another key", send(t, srv, http.MethodPut, docs+"/1", `{"id":"1","pk":"b"}`, inA), 400, "doesn't match")
	has("ahead of its session", send(t, srv, http.MethodGet, docs+"/1", "", withHeaders(inA, "x-ms-session-token", "0:-1#99")), 404, "The read/write session is not available")
	has("another container", send(t, srv, http.MethodGet, docs+"/1", "", withHeaders(inA, "x-ms-cosmos-intended-collection-rid", "other")), 400, "does not match")
	has("a path that is not there", send(t, srv, http.MethodPatch, docs+"/1", `{"operations":[{"op":"add","path":"/none/x","value":1}]}`, inA), 400,
		"For Operation(1): Add Operation can only create a child object of an existing node(array or object) and cannot create path recursively, no path found beyond: 'none'. Learn more: https://aka.ms/cosmosdbpatchdocs")
	query := withHeaders(inA, "x-ms-documentdb-query", "True")
	has("no query", send(t, srv, http.MethodPost, docs, `{"query":"SELECT r.id FROM r WHERE r.x >!= 0"}`, query), 400, "Syntax error, incorrect syntax near")
	has("an unknown name", send(t, srv, http.MethodPost, docs, `{"query":"SELECT * FROM r WHERE a = 1"}`, query), 400, "Identifier 'a' could not be resolved.")
	has("an alias without AS", send(t, srv, http.MethodPost, docs, `{"query":"SELECT COUNT(1) count, c.pk FROM c GROUP BY c.pk"}`, query), 200, `{"count":1,"pk":"a"}`)
	has("a tab in a string", send(t, srv, http.MethodPost, docs, `{"query":"SELECT VALUE '\t' FROM c"}`, query), 200, `["\t"]`)
}

// ContainerSettingsTests: invalid computed properties and spatial indexes.
func TestInvalidDefinitionsAreRefused(t *testing.T) {
	srv, _ := start(t, nil)
	lower := `"SELECT VALUE LOWER(c.name) FROM c"`
	for members, want := range map[string]string{
		`"computedProperties":[{"name":"l","query":` + lower + `},{"name":"l","query":` + lower + `}]`:                                      `Computed property name 'l' cannot be used in multiple definitions.`,
		`"computedProperties":[{"query":` + lower + `}]`:                                                                                    `One of the specified inputs is invalid`,
		`"computedProperties":[{"name":"","query":` + lower + `}]`:                                                                          `Computed property 'name' is either empty or unspecified.`,
		`"computedProperties":[{"name":"l","query":""}]`:                                                                                    `Computed property 'query' is either empty or unspecified.`,
		`"computedProperties":[{"name":"id","query":` + lower + `}]`:                                                                        `The system property name 'id' cannot be used as a computed property name.`,
		`"computedProperties":[{"name":"s","query":` + lower + `}],"indexingPolicy":{"spatialIndexes":[{"path":"/s/*","types":["Point"]}]}`: `Computed property 's' at index (0) has a spatial index. Remove the spatial index on this path.`,
		`"indexingPolicy":{"spatialIndexes":[{"path":"/s/*"}]}`:                                                                             `The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array for the path`,
	} {
		r := send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"x","partitionKey":{"paths":["/pk"]},`+members+`}`, nil)
		var body struct{ Message string }
		if err := json.Unmarshal([]byte(r.Body), &body); err != nil || r.StatusCode != http.StatusBadRequest || !strings.Contains(body.Message, `{"Errors":["`+want) {
			t.Errorf("%s: %d %s, want %s", members, r.StatusCode, r.Body, want)
		}
	}
}

// OfferTests.
func TestReplacedOffers(t *testing.T) {
	srv := cosmosemu.StartT(t)
	send(t, srv, http.MethodPost, "dbs", `{"id":"db"}`, nil)
	send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"]}}`, nil)
	var list struct{ Offers []struct{ ID string } }
	if err := json.Unmarshal([]byte(send(t, srv, http.MethodGet, "offers", "", nil).Body), &list); err != nil || len(list.Offers) != 1 {
		t.Fatal(list, err)
	}
	id := list.Offers[0].ID
	put := func(id, rid, content string) answer {
		path := "offers/" + list.Offers[0].ID
		return sendSigned(t, srv, http.MethodPut, path, "offers", strings.ToLower(list.Offers[0].ID), fmt.Sprintf(`{"id":%q,"_rid":%q,"content":%s}`, id, rid, content), nil)
	}
	if r := put(id, id, `{"offerAutopilotSettings":{"maxThroughput":6000}}`); r.StatusCode != http.StatusOK || !strings.Contains(r.Body, `"offerThroughput":600,`) {
		t.Errorf("autoscale: %d %s", r.StatusCode, r.Body)
	}
	for _, content := range []string{
		`{"offerThroughput":-5}`, `{"offerThroughput":399}`, `{"offerThroughput":450}`, `{"offerThroughput":"500"}`, `{}`, `null`,
		`{"offerAutopilotSettings":{"maxThroughput":0}}`, `{"offerAutopilotSettings":{"maxThroughput":1500}}`,
	} {
		if r := put(id, id, content); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", content, r.StatusCode, r.Body)
		}
	}
	for _, wrong := range [][2]string{{"x", id}, {id, "x"}, {"", ""}} {
		if r := put(wrong[0], wrong[1], `{"offerThroughput":500}`); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%v: %d", wrong, r.StatusCode)
		}
	}
}

// GatewayTests.ValidateChangeFeedIfModifiedSince: a feed since a time omits the changes of that
// second.
func TestChangeFeedSinceExcludesThatSecond(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	var doc struct {
		TS int64 `json:"_ts"`
	}
	if err := json.Unmarshal([]byte(send(t, srv, http.MethodGet, "dbs/db/colls/c/docs/1", "", inA).Body), &doc); err != nil {
		t.Fatal(err)
	}
	srv.Advance(time.Second)
	create(t, c, "2", "a")
	for before, want := range map[int64]string{0: "[2]", 1: "[1 2]"} {
		since := time.Unix(doc.TS-before, 0).UTC().Format(http.TimeFormat)
		r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", map[string]string{"A-IM": "Incremental Feed", "If-Modified-Since": since, "x-ms-documentdb-partitionkeyrangeid": "0"})
		if got := fmt.Sprint(idsOf(t, r)); got != want {
			t.Errorf("%d s before the first change: %s, want %s", before, got, want)
		}
	}
}

// BatchTestBase: a container has its own throughput or shares that of the database.
func TestSharedThroughput(t *testing.T) {
	srv := cosmosemu.StartT(t)
	send(t, srv, http.MethodPost, "dbs", `{"id":"shared"}`, map[string]string{"x-ms-offer-throughput": "400"})
	send(t, srv, http.MethodPost, "dbs", `{"id":"own"}`, nil)
	for db, want := range map[string]string{"shared": "True", "own": ""} {
		r := send(t, srv, http.MethodPost, "dbs/"+db+"/colls", `{"id":"c","partitionKey":{"paths":["/pk"]}}`, nil)
		again := send(t, srv, http.MethodGet, "dbs/"+db+"/colls/c", "", nil)
		if r.Header.Get("x-ms-share-throughput") != want || again.Header.Get("x-ms-share-throughput") != want {
			t.Errorf("%s: %q, %q", db, r.Header.Get("x-ms-share-throughput"), again.Header.Get("x-ms-share-throughput"))
		}
	}
}
