package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// planVersion is partitionedQueryExecutionInfoVersion.
const planVersion = 2

// queryPlan answers POST .../docs with the query plan header: how an SDK is to run
// a query over the physical partitions by itself.
func queryPlan(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	b, err := x.parseQuery(x.setting(c))
	if err != nil {
		return nil, err
	}
	key, err := x.planKey(c, b)
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

// checkFeatures refuses a plan that the SDK would run wrongly: one that needs
// features it does not say it has. A client that says nothing is taken to have all.
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

// planKey is the partition key, or the first values of one, that the query is confined
// to; nil if it is not.
func (x *request) planKey(c *store.Container, b *query.Bound) (epk.Key, error) {
	def := c.Definition()
	key, err := x.keyHeader()
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

// queryRange is where a query can find rows.
type queryRange struct {
	Min            string `json:"min"`
	Max            string `json:"max"`
	IsMinInclusive bool   `json:"isMinInclusive"`
	IsMaxInclusive bool   `json:"isMaxInclusive"`
}

// planRange is that of a query confined to key. A whole key is one point, by which the
// .NET SDK sees that one logical partition has all rows. A query without FROM runs on
// one range, or there would be a row of each.
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

func encodePlan(info query.QueryInfo, at queryRange) ([]byte, error) {
	plan, err := json.Marshal(struct {
		Version     int             `json:"partitionedQueryExecutionInfoVersion"`
		QueryInfo   query.QueryInfo `json:"queryInfo"`
		QueryRanges []queryRange    `json:"queryRanges"`
	}{planVersion, info, []queryRange{at}})
	if err != nil {
		return nil, fmt.Errorf("encode query plan: %w", err)
	}
	return plan, nil
}
