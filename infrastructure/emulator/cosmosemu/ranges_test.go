package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// The throughput of a new container determines its physical partitions, as on the service.
func TestThroughputCreatesPartitions(t *testing.T) {
	srv, _ := start(t, nil)
	for i, o := range []struct {
		header, value string
		want          int
	}{
		{"x-ms-offer-throughput", "400", 1},
		{"x-ms-offer-throughput", "10000", 1},
		{"x-ms-offer-throughput", "10100", 2},
		{"x-ms-offer-throughput", "12000", 2},
		{"x-ms-offer-throughput", "30000", 5},
		{"x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":50000}`, 9},
	} {
		name := fmt.Sprint("t", i)
		send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"`+name+`","partitionKey":{"paths":["/pk"]}}`, map[string]string{o.header: o.value})
		ranges, err := srv.PartitionKeyRanges("db", name)
		if err != nil || len(ranges) != o.want {
			t.Errorf("%s %s: %d ranges, want %d (%v)", o.header, o.value, len(ranges), o.want, err)
		}
	}
}

// The .NET SDK resumes an ordered query with a resumeFilter next to the query.
func TestResumeFilter(t *testing.T) {
	srv, _ := start(t, nil)
	rids := map[string]string{}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		n := map[string]string{"a": "1", "b": "2", "c": "2", "d": "2", "e": "3"}[id]
		r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"id":"`+id+`","pk":"a","n":`+n+`}`, inA)
		rids[id] = resourceID(t, r)
	}
	for filter, want := range map[string][2]string{ // ascending, descending
		`{"value":[2],"exclude":false}`:                           {"bcde", "dcba"},
		`{"value":[2],"exclude":true}`:                            {"e", "a"},
		`{"value":[2],"rid":"` + rids["c"] + `","exclude":false}`: {"cde", "cba"},
		`{"value":[2],"rid":"` + rids["c"] + `","exclude":true}`:  {"de", "ba"},
	} {
		for i, order := range []string{"ASC", "DESC"} {
			r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"query":"SELECT VALUE c.id FROM c ORDER BY c.n `+order+`","resumeFilter":`+filter+`}`,
				map[string]string{"x-ms-documentdb-query": "True", "x-ms-documentdb-partitionkey": `["a"]`})
			var page struct{ Documents []string }
			if err := json.Unmarshal([]byte(r.Body), &page); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(page.Documents, ""); got != want[i] {
				t.Errorf("%s %s: %s, want %s", order, filter, got, want[i])
			}
		}
	}
}

// A container with partition keys of version 1 can have several physical partitions, splits,
// merges, and survives a restart. The test reads the feed without azcosmos, because azcosmos
// hashes such keys differently.
func TestPartitionKeysOfVersionOne(t *testing.T) {
	dir := t.TempDir()
	srv, err := cosmosemu.Start(&cosmosemu.Options{DataDir: dir})
	must(t, err)
	must(t, srv.CreateDatabase("db"))
	const items = 200
	send(t, srv, http.MethodPost, "dbs/db/colls", `{"id":"v1","partitionKey":{"paths":["/pk"],"version":1}}`, map[string]string{"x-ms-offer-throughput": "30000"})
	container := func() *azcosmos.ContainerClient {
		c, err := srv.Client().NewContainer("db", "v1")
		must(t, err)
		return c
	}
	for i := range items {
		create(t, container(), "1", fmt.Sprint("key ", i))
	}
	check := func(want int) {
		t.Helper()
		ranges, err := srv.PartitionKeyRanges("db", "v1")
		must(t, err)
		seen, of := 0, ""
		for _, r := range ranges {
			page := send(t, srv, http.MethodGet, "dbs/db/colls/v1/docs", "", map[string]string{
				"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": r.ID, "x-ms-start-epk": r.MinInclusive, "x-ms-end-epk": r.MaxExclusive,
			})
			n := strings.Count(page.Body, `"_lsn"`)
			of += fmt.Sprint(" ", n)
			seen += n
			if n == 0 {
				t.Errorf("nothing in range %+v", r)
			}
		}
		if len(ranges) != want || seen != items {
			t.Errorf("%d ranges with%s changes, want %d with %d", len(ranges), of, want, items)
		}
		for i := range items {
			_, err := container().ReadItem(t.Context(), key(fmt.Sprint("key ", i)), "1", nil)
			wantStatus(t, fmt.Sprint("item of key ", i), err, 0)
		}
	}
	check(5)
	ranges, err := srv.PartitionKeyRanges("db", "v1")
	must(t, err)
	must(t, srv.Split("db", "v1", ranges[0].ID))
	check(6)
	must(t, srv.Merge("db", "v1", ranges[1].ID, ranges[2].ID))
	check(5)
	must(t, srv.Close())
	srv, err = cosmosemu.Start(&cosmosemu.Options{DataDir: dir})
	must(t, err)
	defer srv.Close()
	check(5)
}
