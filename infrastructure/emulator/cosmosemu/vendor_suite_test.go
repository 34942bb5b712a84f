package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// These tests check expectations of Microsoft's own tests of the .NET and Python SDKs, for which
// the emulator once gave other answers.

func TestInvalidHeaderValuesAreRefused(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	for name, values := range map[string][2]string{ // valid, invalid
		"x-ms-version":                                       {"2018-12-31", "2015-01-01"},
		"x-ms-consistency-level":                             {"Eventual", "Mostly"},
		"x-ms-indexing-directive":                            {"Exclude", "Never"},
		"x-ms-cosmos-supported-serialization-formats":        {"JsonText, CosmosBinary", "Xml"},
		"x-ms-documentdb-responsecontinuationtokenlimitinkb": {"1", "0"},
		"x-ms-enumeration-direction":                         {"Forward", "Sideways"},
	} {
		for i, want := range []int{http.StatusOK, http.StatusBadRequest} {
			r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", map[string]string{name: values[i]})
			if r.StatusCode != want || want == http.StatusBadRequest && !strings.Contains(r.Body, name) {
				t.Errorf("%s: %s: %d %s", name, values[i], r.StatusCode, r.Body)
			}
		}
	}
}

func TestContinuationTokenLimitIsApplied(t *testing.T) {
	srv, _ := start(t, nil)
	for _, id := range []string{"1", "2"} {
		send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"id":"`+id+`","pk":"a","s":"`+strings.Repeat(id, 1500)+`"}`, inA)
	}
	for limit, want := range map[string]int{"1": 400, "4": 200} {
		r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"query":"SELECT * FROM c ORDER BY c.s"}`, map[string]string{
			"x-ms-documentdb-query": "True", "x-ms-documentdb-partitionkey": `["a"]`, "x-ms-max-item-count": "1", "x-ms-documentdb-responsecontinuationtokenlimitinkb": limit,
		})
		if r.StatusCode != want {
			t.Errorf("a limit of %s KB: %d, want %d", limit, r.StatusCode, want)
		}
	}
}

func TestReplaceMayChangeTheID(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "old", "a")
	create(t, c, "taken", "a")
	replace := func(id, body string) int {
		return send(t, srv, http.MethodPut, "dbs/db/colls/c/docs/"+id, body, inA).StatusCode
	}
	if got := replace("old", `{"id":"taken","pk":"a"}`); got != http.StatusConflict {
		t.Errorf("to an id in use: %d", got)
	}
	if got := replace("none", `{"id":"new","pk":"a"}`); got != http.StatusNotFound {
		t.Errorf("of a missing item: %d", got)
	}
	if got := replace("old", `{"id":"new","pk":"a"}`); got != http.StatusOK {
		t.Errorf("to a new id: %d", got)
	}
	var left []string
	for _, ch := range feedOf(t, srv, "0") {
		left = append(left, ch.ID)
	}
	if fmt.Sprint(left) != "[taken new]" {
		t.Errorf("remaining items: %v", left)
	}
}

func TestRepliesContainLSN(t *testing.T) {
	srv, _ := start(t, nil)
	for i := 1; i < 3; i++ {
		r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", fmt.Sprintf(`{"id":"%d","pk":"a"}`, i), inA)
		if got := r.Header.Get("lsn"); got != fmt.Sprint(i) {
			t.Errorf("LSN %q of write %d", got, i)
		}
	}
}

// The SDK for Python needs the range, because it otherwise reads all ranges again after each
// operation.
func TestRepliesContainRangeAndLocation(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs/1", "", inA)
	list, err := srv.PartitionKeyRanges("db", "c")
	must(t, err)
	if got := r.Header.Get("x-ms-documentdb-partitionkeyrangeid"); !slices.ContainsFunc(list, func(r cosmosemu.PartitionKeyRange) bool { return r.ID == got }) {
		t.Errorf("range %q", got)
	}
	if got := r.Header.Get("content-location"); got != srv.Endpoint()+"dbs/db/colls/c/docs/1" {
		t.Errorf("location %q", got)
	}
}

// x-ms-item-lsn is the LSN of the last write of the item, lsn that of its range.
func TestItemReadsCarryTheLSNsOfItemAndRange(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	create(t, c, "2", "a")
	for id, want := range map[string][3]string{"1": {"1", "2", "0"}, "2": {"2", "2", "0"}, "missing": {"", "2", "0"}} {
		r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs/"+id, "", inA)
		got := [3]string{r.Header.Get("x-ms-item-lsn"), r.Header.Get("lsn"), r.Header.Get("x-ms-documentdb-partitionkeyrangeid")}
		if got != want {
			t.Errorf("item %s, %d: LSN, LSN of the range, range %v, want %v", id, r.StatusCode, got, want)
		}
	}
}

func TestEveryAnswerHasItsDuration(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	srv.Control(cosmosemu.OpReadAccount, cosmosemu.Times(1, cosmosemu.Throttled(0)))
	for _, path := range []string{"", "", "dbs/db", "dbs/db/colls/c/docs/1", "dbs/db/colls/c/docs/missing", "dbs/none", "unknown"} {
		r := send(t, srv, http.MethodGet, path, "", inA)
		if ms, err := strconv.ParseFloat(r.Header.Get("x-ms-request-duration-ms"), 64); err != nil || ms < 0 || ms > 60_000 {
			t.Errorf("%q, %d: duration %q", path, r.StatusCode, r.Header.Get("x-ms-request-duration-ms"))
		}
	}
}

func TestConflictQueryNeedsKeyOrCrossPartition(t *testing.T) {
	srv, _ := start(t, nil)
	for _, c := range []struct {
		headers map[string]string
		want    int
	}{{nil, 400}, {map[string]string{"x-ms-documentdb-query-enablecrosspartition": "True"}, 200}, {inA, 200}} {
		headers := map[string]string{}
		maps.Copy(headers, c.headers)
		headers["Content-Type"] = "application/query+json"
		r := send(t, srv, http.MethodPost, "dbs/db/colls/c/conflicts", `{"query":"SELECT * FROM c"}`, headers)
		if r.StatusCode != c.want {
			t.Errorf("%v: %d %s", headers, r.StatusCode, r.Body)
		}
	}
}

func TestKeyWindowOnVersion1(t *testing.T) {
	srv, _ := start(t, nil)
	send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"v1","partitionKey":{"paths":["/pk"],"version":1}}`, nil)
	send(t, srv, http.MethodPost, "dbs/db/colls/v1/docs", `{"id":"1","pk":"a"}`, inA)
	for bounds, want := range map[[2]string]int{{"", "FF"}: 200, {"", "1800"}: 200, {"07", "FF"}: 304, {"05C1", "05C2"}: 200, {"05C1D785", "05C1D786"}: 200, {"05C1D786", "FF"}: 304} {
		r := send(t, srv, http.MethodGet, "dbs/db/colls/v1/docs", "", map[string]string{"A-IM": "Incremental Feed", "x-ms-start-epk": bounds[0], "x-ms-end-epk": bounds[1]})
		if r.StatusCode != want {
			t.Errorf("window %v: %d %s, want %d", bounds, r.StatusCode, r.Body, want)
		}
	}
}

func TestTTLOfNullIsRefused(t *testing.T) {
	srv, _ := start(t, nil)
	if r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"id":"1","pk":"a","ttl":null}`, inA); r.StatusCode != http.StatusBadRequest {
		t.Errorf("%d", r.StatusCode)
	}
	for body, want := range map[string]int{`"ttlPropertyPath":"/_ts"`: 400, `"ttlPropertyPath":"/_ts","defaultTtl":5`: 201, `"ttlPropertyPath":"/other","defaultTtl":5`: 400} {
		r := send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"t`+fmt.Sprint(want)+`","partitionKey":{"paths":["/pk"]},`+body+`}`, nil)
		if r.StatusCode != want {
			t.Errorf("%s: %d, want %d", body, r.StatusCode, want)
		}
	}
}

func TestContainerHasOffer(t *testing.T) {
	srv, _ := start(t, nil)
	send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"plain","partitionKey":{"paths":["/pk"]}}`, nil)
	r := send(t, srv, http.MethodGet, "offers", "", nil)
	var in struct {
		Offers []struct {
			ID      string `json:"id"`
			Content struct{ OfferThroughput int }
		}
	}
	if err := json.Unmarshal([]byte(r.Body), &in); err != nil || len(in.Offers) != 1 || in.Offers[0].Content.OfferThroughput != 400 {
		t.Fatalf("%s (%v)", r.Body, err)
	}
	if one := sendSigned(t, srv, http.MethodGet, "offers/"+in.Offers[0].ID, "offers", in.Offers[0].ID, "", nil); one.Header.Get("x-ms-cosmos-min-throughput") != "400" {
		t.Errorf("%d %v", one.StatusCode, one.Header)
	}
	if r := send(t, srv, http.MethodGet, "dbs/db/colls/plain", "", map[string]string{"x-ms-documentdb-populatequotainfo": "True"}); r.Header.Get("x-ms-documentdb-collection-index-transformation-progress") != "100" {
		t.Errorf("no progress of indexing in %v", r.Header)
	}
}

// A page of databases starts after the last one of the previous page, even if that was deleted.
func TestMetadataFeedsHavePages(t *testing.T) {
	srv, _ := start(t, nil)
	for _, name := range []string{"d1", "d2", "d3", "d4"} {
		if err := srv.CreateDatabase(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, query := range []bool{false, true} {
		var names []string
		token := ""
		for range 5 {
			headers := map[string]string{"x-ms-max-item-count": "2", "x-ms-continuation": token}
			method, body := http.MethodGet, ""
			if query {
				method, body, headers["x-ms-documentdb-query"] = http.MethodPost, `{"query":"SELECT * FROM d WHERE d.id != 'd2'"}`, "True"
			}
			r := send(t, srv, method, "dbs", body, headers)
			var page struct{ Databases []struct{ ID string } }
			if err := json.Unmarshal([]byte(r.Body), &page); err != nil || len(page.Databases) > 2 {
				t.Fatalf("%d %s (%v)", r.StatusCode, r.Body, err)
			}
			for _, db := range page.Databases {
				names = append(names, db.ID)
			}
			if token = r.Header.Get("x-ms-continuation"); token == "" {
				break
			}
		}
		want := "d1 d2 d3 d4 db"
		if query {
			want = "d1 d3 d4 db"
		}
		slices.Sort(names) // databases of the same millisecond are sorted by name
		if got := strings.Join(names, " "); got != want {
			t.Errorf("query %v: %s, want %s", query, got, want)
		}
	}
}

func TestConditionOfAPatchInABatch(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `[{"operationType":"Patch","id":"1","resourceBody":{"condition":"from c where c.n = 7","operations":[{"op":"set","path":"/x","value":1}]}}]`,
		map[string]string{"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", "x-ms-documentdb-partitionkey": `["a"]`})
	if !strings.Contains(r.Body, `"statusCode":412`) {
		t.Errorf("%d %s", r.StatusCode, r.Body)
	}
}

func TestDeleteAllItemsOfAPartitionKey(t *testing.T) {
	srv, c := start(t, nil)
	for i := range 250 {
		create(t, c, fmt.Sprint(i), "a")
	}
	create(t, c, "1", "b")
	r := sendSigned(t, srv, http.MethodPost, "dbs/db/colls/c/operations/partitionkeydelete", "partitionkey", "dbs/db/colls/c", "", inA)
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", r.StatusCode, r.Body)
	}
	if items, _ := srv.Items("db", "c"); len(items) != 1 {
		t.Errorf("%d items are left", len(items))
	}
}

func TestConflictFeedIsEmpty(t *testing.T) {
	srv, _ := start(t, nil)
	if r := send(t, srv, http.MethodGet, "dbs/db/colls/c/conflicts", "", nil); r.StatusCode != http.StatusOK || !strings.Contains(r.Body, `"Conflicts":[]`) {
		t.Errorf("%d %s", r.StatusCode, r.Body)
	}
	if r := send(t, srv, http.MethodGet, "dbs/db/colls/c/conflicts/x", "", nil); r.StatusCode != http.StatusNotFound {
		t.Errorf("%d %s", r.StatusCode, r.Body)
	}
}
