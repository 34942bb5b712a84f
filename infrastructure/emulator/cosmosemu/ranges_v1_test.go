package cosmosemu_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
)

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
