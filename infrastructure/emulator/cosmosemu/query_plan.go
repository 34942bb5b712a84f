package cosmosemu

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// planVersion is the value of partitionedQueryExecutionInfoVersion.
const planVersion = 2

// queryRange is a range of effective partition keys in a query plan.
type queryRange struct {
	Min            string `json:"min"`
	Max            string `json:"max"`
	IsMinInclusive bool   `json:"isMinInclusive"`
	IsMaxInclusive bool   `json:"isMaxInclusive"`
}

func encodePlan(info query.QueryInfo, at ...queryRange) ([]byte, error) {
	plan, err := json.Marshal(struct {
		Version     int             `json:"partitionedQueryExecutionInfoVersion"`
		QueryInfo   query.QueryInfo `json:"queryInfo"`
		QueryRanges []queryRange    `json:"queryRanges"`
	}{planVersion, info, at})
	if err != nil {
		return nil, fmt.Errorf("encode query plan: %w", err)
	}
	return plan, nil
}

// planKey returns the partition key of the header, or the first values of one; nil if the query
// is not confined by it.
func planKey(h http.Header, def *store.Definition) (epk.Key, error) {
	key, err := keyHeader(h)
	if err != nil || len(key) > len(def.Paths) || len(key) < len(def.Paths) && !def.Hierarchical {
		return nil, err
	}
	return key, nil
}

// nowhere is the range of a query that reads no document: one point in the first range, because
// the query must run once.
var nowhere = queryRange{IsMinInclusive: true, IsMaxInclusive: true}

// planRanges returns the ranges of a query in ascending order. A complete key gives a single
// point, from which the .NET SDK concludes that one logical partition has all rows.
func planRanges(c *store.Container, b *query.Bound, key epk.Key) []queryRange {
	def := c.Definition()
	if b.Sourceless() {
		return []queryRange{nowhere}
	}
	if len(key) > 0 {
		return []queryRange{keyRange(def, key)}
	}
	full := epk.Full()
	all := []queryRange{{Min: epk.Format(full.Min), Max: epk.Format(full.Max), IsMinInclusive: true}}
	keys, ok := b.Keys(keyPaths(def))
	if !ok {
		return all
	}
	var ranges []queryRange
	for _, values := range keys {
		key := keyValues(values)
		if key == nil || len(key) < len(def.Paths) && !def.Hierarchical {
			return all
		}
		ranges = append(ranges, keyRange(def, key))
	}
	if len(ranges) == 0 {
		return []queryRange{nowhere}
	}
	slices.SortFunc(ranges, func(a, b queryRange) int {
		return cmp.Or(strings.Compare(a.Min, b.Min), strings.Compare(b.Max, a.Max))
	})
	apart := ranges[:1]
	for _, r := range ranges[1:] { // a complete key may be below the first values of another
		if last := apart[len(apart)-1]; r.Min >= last.Max && r != last {
			apart = append(apart, r)
		}
	}
	return apart
}

func keyRange(def *store.Definition, key epk.Key) queryRange {
	at := epk.Point(def.Hash().Append(nil, key))
	r := queryRange{Min: epk.Format(at.Min), Max: epk.Format(at.Max), IsMinInclusive: true}
	if len(key) == len(def.Paths) {
		r.Max, r.IsMaxInclusive = r.Min, true
	}
	return r
}
