package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// readPartitionKeyRanges answers GET .../pkranges with the live physical partitions.
//
//   - Supports: If-None-Match with the version of the topology as ETag. The current version
//     gives 304, on which azcosmos ends its read. An older one gives all live ranges again, each
//     with its ancestors, which the client then drops.
//   - Refuses: an unknown container (404). A page size is ignored: all are on one page.
//   - Source: REST reference, Get Partition Key Ranges; cosmos_partition_key_range_cache.go
//     of azcosmos.
func readPartitionKeyRanges(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	t := c.Topology()
	etag := strconv.Quote(strconv.Itoa(t.Version))
	if first(x.header, headerIfNoneMatch) == etag {
		a := ok(http.StatusNotModified, nil, metadataCharge)
		a.etag = etag
		return a, nil
	}
	out := fmt.Appendf(nil, `{"_rid":%q,"PartitionKeyRanges":[`, c.RID)
	for i := range t.Ranges {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendRange(out, c, t, &t.Ranges[i])
	}
	out = fmt.Appendf(out, `],"_count":%d}`, len(t.Ranges))
	a := ok(http.StatusOK, out, metadataCharge)
	a.etag, a.count = etag, len(t.Ranges)
	return a, nil
}

func appendRange(dst []byte, c *store.Container, t *store.Topology, r *store.Range) []byte {
	parents := r.Parents
	if parents == nil {
		parents = []string{}
	}
	list, _ := json.Marshal(parents) // strings never fail
	return fmt.Appendf(dst, `{"id":%q,"minInclusive":%q,"maxExclusive":%q,"parents":%s,"ridPrefix":%s,"status":"online",`+
		`"throughputFraction":%g,"ownedArchivalPKRangeIds":[],"_rid":%q,"_self":"dbs/%s/colls/%s/pkranges/%s/","_etag":"\"%d-%s\"","_ts":%d,"lsn":%d}`,
		r.ID, epk.Format(r.Min), epk.Format(r.Max), list, r.ID, 1/float64(len(t.Ranges)), c.RID+r.ID,
		c.DatabaseRID, c.RID, r.ID, t.Version, r.ID, c.Modified().Unix(), r.LSN())
}
