package cosmosemu

import (
	"fmt"
	"net/http"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// queryPlan answers POST .../docs with the query plan header. The plan contains the
// instructions for an SDK that runs a query over the physical partitions on its own.
//
//   - Supports: ORDER BY, DISTINCT, GROUP BY, aggregates, OFFSET, LIMIT and TOP.
//   - Refuses: unsupported SQL (400), a plan that needs a feature which
//     x-ms-cosmos-supported-query-features does not contain (400 with its name).
//   - Source: the query plan requests of @azure/cosmos 4.9.3 and of the SDKs for Python, Java
//     and .NET.
func queryPlan(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	b, err := parseQuery(x.body, querySetting(x, c))
	if err != nil {
		return nil, err
	}
	key, err := planKey(x.header, c, b)
	if err != nil {
		return nil, err
	}
	info, err := b.Info()
	if err != nil {
		return nil, err
	}
	if err := checkFeatures(&info, first(x.header, headerQueryFeatures)); err != nil {
		return nil, err
	}
	plan, err := encodePlan(info, planRange(c, b, key))
	if err != nil {
		return nil, err
	}
	return ok(http.StatusOK, plan, metadataCharge), nil
}

// checkFeatures refuses a plan that needs features which the header does not list, because
// the SDK would run it wrongly. A client without the header is assumed to support all.
func checkFeatures(info *query.QueryInfo, header string) error {
	if header == "" {
		return nil
	}
	has := map[string]bool{}
	for name := range strings.SplitSeq(header, ",") {
		has[strings.TrimSpace(name)] = true
	}
	var missing strings.Builder
	for _, name := range info.Features() {
		if !has[name] {
			fmt.Fprintf(&missing, "\nQuery contained %s, which the calling client does not support.", name)
		}
	}
	if missing.Len() == 0 {
		return nil
	}
	return refuse(http.StatusBadRequest, "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the requested features:%s", missing.String())
}

// planKey returns the partition key that the query is confined to, or the first values of
// one; nil if the query is not confined.
func planKey(h http.Header, c *store.Container, b *query.Bound) (epk.Key, error) {
	def := c.Definition()
	key, err := keyHeader(h)
	if err != nil {
		return nil, err
	}
	if key == nil {
		key = keyValues(b.PartitionKey(keyPaths(def)))
	}
	if len(key) > len(def.Paths) || len(key) < len(def.Paths) && !def.Hierarchical {
		return nil, nil
	}
	return key, nil
}

// planRange returns the range of a query that is confined to key. A complete key gives a
// single point, from which the .NET SDK concludes that one logical partition has all rows.
// A query without FROM runs on one range only, otherwise each range would return its row.
func planRange(c *store.Container, b *query.Bound, key epk.Key) queryRange {
	def := c.Definition()
	scope := epk.Full()
	switch {
	case b.Sourceless():
		scope = c.Topology().Ranges[0].Bounds()
	case len(key) > 0:
		scope = epk.Point(def.Hash().Append(nil, key))
		if len(key) == len(def.Paths) {
			at := epk.Format(scope.Min)
			return queryRange{Min: at, Max: at, IsMinInclusive: true, IsMaxInclusive: true}
		}
	}
	return queryRange{Min: epk.Format(scope.Min), Max: epk.Format(scope.Max), IsMinInclusive: true}
}
