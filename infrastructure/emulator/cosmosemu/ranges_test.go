package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
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
