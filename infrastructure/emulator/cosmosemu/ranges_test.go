package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"

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

// A hot partition is throttled at its share of the throughput; the others are not, and the client
// succeeds at the rate of the share.
func TestAPartitionIsThrottledAtItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, c := start(t, &cosmosemu.Options{Network: pipenet.New(), Throughput: 400, Partitions: 4})
		before := usage(t, srv)
		began := time.Now()
		const writes = 200
		for i := range writes { // 4.95 RU each, 100 RU/s
			if _, err := c.UpsertItem(t.Context(), key("hot"), doc(fmt.Sprint(i), "hot"), nil); err != nil {
				t.Fatal(err)
			}
		}
		least := time.Duration((writes*4.95 - 100 - 4.95) / 100 * float64(time.Second)) // a second is saved up, the last may exceed it
		if took := time.Since(began); took < least || took > 2*least {
			t.Errorf("%d writes took %v, want at least %v", writes, took, least)
		}
		hot := 0
		for i, r := range usage(t, srv) {
			if before[i].Throughput != 100 {
				t.Errorf("range %s has %v RU/s, want 100", r.ID, before[i].Throughput)
			}
			if r.Throttled > 0 {
				hot++
				if r.Consumed < 50 || r.Consumed > 105 {
					t.Errorf("the hot range %s used %v RU in a second, want about 100", r.ID, r.Consumed)
				}
			}
		}
		if hot != 1 {
			t.Errorf("%d ranges were throttled, want the hot one", hot)
		}
		for _, other := range []string{"a", "b", "c", "d", "e"} { // most are on other ranges
			began := time.Now()
			if _, err := c.UpsertItem(t.Context(), key(other), doc("1", other), nil); err == nil && time.Since(began) == 0 {
				return
			}
		}
		t.Error("no key of another range was written at once")
	})
}

func usage(t *testing.T, srv *cosmosemu.Server) []cosmosemu.PartitionKeyRange {
	t.Helper()
	ranges, err := srv.PartitionKeyRanges("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	return ranges
}

// Every kind of request is refused with the time to wait, after which it succeeds.
func TestThrottledRequestsNameTheTimeToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := start(t, &cosmosemu.Options{Network: pipenet.New(), Throughput: 100})
		item, all := inA, map[string]string{"x-ms-documentdb-query-enablecrosspartition": "True", "x-ms-documentdb-isquery": "True", "Content-Type": "application/query+json"}
		bulk := map[string]string{"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-continue-on-error": "True", "x-ms-documentdb-partitionkeyrangeid": "0"}
		feed := map[string]string{"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "0"}
		batch := map[string]string{"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", "x-ms-documentdb-partitionkey": `["a"]`}
		send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"id":"1","pk":"a"}`, item)
		for what, r := range map[string]struct {
			method, path, body string
			headers            map[string]string
		}{
			"read":   {http.MethodGet, "/1", "", item},
			"write":  {http.MethodPut, "/1", `{"id":"1","pk":"a","n":1}`, item},
			"query":  {http.MethodPost, "", `{"query":"SELECT * FROM c"}`, all},
			"list":   {http.MethodGet, "", "", nil},
			"feed":   {http.MethodGet, "", "", feed},
			"batch":  {http.MethodPost, "", `[{"operationType":"Read","id":"1"}]`, batch},
			"bulk":   {http.MethodPost, "", `[{"operationType":"Read","id":"1","partitionKey":"[\"a\"]"}]`, bulk},
			"delete": {http.MethodDelete, "/none", "", item},
		} {
			drain := 0
			for ; drain < 100; drain++ { // 204.8 RU, more than the two seconds that the wait must cover
				if a := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"id":"big","pk":"a","pad":"`+strings.Repeat("x", 512<<10)+`"}`, map[string]string{"x-ms-documentdb-partitionkey": `["a"]`, "x-ms-documentdb-is-upsert": "True"}); a.StatusCode == http.StatusTooManyRequests {
					break
				}
			}
			refused := send(t, srv, r.method, "dbs/db/colls/c/docs"+r.path, r.body, r.headers)
			if refused.StatusCode != http.StatusTooManyRequests || refused.Header.Get("x-ms-substatus") != "3200" {
				t.Errorf("%s without request units: %d/%s %s", what, refused.StatusCode, refused.Header.Get("x-ms-substatus"), refused.Body)
				continue
			}
			wait, err := strconv.Atoi(refused.Header.Get("x-ms-retry-after-ms"))
			if err != nil || wait < 1 || wait > 2000 {
				t.Errorf("%s: wait %v ms, %v", what, wait, err)
			}
			time.Sleep(time.Duration(wait-2) * time.Millisecond)
			if early := send(t, srv, r.method, "dbs/db/colls/c/docs"+r.path, r.body, r.headers); early.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%s before the wait is over: %d", what, early.StatusCode)
			}
			time.Sleep(2 * time.Millisecond)
			if again := send(t, srv, r.method, "dbs/db/colls/c/docs"+r.path, r.body, r.headers); again.StatusCode == http.StatusTooManyRequests {
				t.Errorf("%s after the wait of %d ms: %d", what, wait, again.StatusCode)
			}
		}
	})
}

// The throughput is that of the container, of its database, or the default, at most 10,000 a
// partition. Autoscale counts with its maximum, and children of a split share anew.
func TestSharesFollowTheThroughput(t *testing.T) {
	srv, _ := start(t, &cosmosemu.Options{Throughput: 500_000})
	create := func(db, name string, headers map[string]string) {
		t.Helper()
		if r := send(t, srv, http.MethodPost, "dbs/"+db+"/colls", `{"id":"`+name+`","partitionKey":{"paths":["/pk"]}}`, headers); r.StatusCode != http.StatusCreated {
			t.Fatalf("%d %s", r.StatusCode, r.Body)
		}
	}
	create("db", "manual", map[string]string{"x-ms-offer-throughput": "600"})
	create("db", "auto", map[string]string{"x-ms-cosmos-offer-autopilot-settings": `{"maxThroughput":12000}`})
	send(t, srv, http.MethodPost, "dbs", `{"id":"shared"}`, map[string]string{"x-ms-offer-throughput": "800"})
	create("shared", "one", nil)
	create("shared", "two", nil)
	if err := srv.Split("shared", "two", "0"); err != nil {
		t.Fatal(err)
	}
	if err := srv.Split("db", "manual", "0"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]float64{"db/c": 10_000, "db/manual": 300, "db/auto": 6000, "shared/one": 800. / 3, "shared/two": 800. / 3} {
		db, name, _ := strings.Cut(path, "/")
		ranges, err := srv.PartitionKeyRanges(db, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range ranges {
			if r.Throughput != want {
				t.Errorf("%s, range %s: %v RU/s, want %v", path, r.ID, r.Throughput, want)
			}
		}
	}
	if off := cosmosemu.StartT(t); off != nil {
		must(t, off.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}))
		if r := usage(t, off)[0]; r.Throughput != 0 {
			t.Errorf("by default a range has %v RU/s, want no limit", r.Throughput)
		}
	}
}
