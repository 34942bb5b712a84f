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
	scope, err := x.planScope(c, b)
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
	plan, err := encodePlan(info, scope)
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

// planScope is the window the query can find rows in. One without FROM runs on one
// range, or there would be a row of each.
func (x *request) planScope(c *store.Container, b *query.Bound) (epk.Range, error) {
	def := c.Definition()
	if b.Sourceless() {
		return c.Topology().Ranges[0].Bounds(), nil
	}
	key, err := x.keyHeader()
	if err != nil {
		return epk.Range{}, err
	}
	if key == nil {
		key = keyValues(b.PartitionKey(keyPaths(def)))
	}
	if len(key) == 0 || len(key) > len(def.Paths) || len(key) < len(def.Paths) && !def.Hierarchical {
		return epk.Full(), nil
	}
	return epk.Point(def.Hash().Append(nil, key)), nil
}

func planOf(b *query.Bound, scope epk.Range) ([]byte, error) {
	info, err := b.Info()
	if err != nil {
		return nil, err
	}
	return encodePlan(info, scope)
}

func encodePlan(info query.QueryInfo, scope epk.Range) ([]byte, error) {
	type queryRange struct {
		Min            string `json:"min"`
		Max            string `json:"max"`
		IsMinInclusive bool   `json:"isMinInclusive"`
		IsMaxInclusive bool   `json:"isMaxInclusive"`
	}
	plan, err := json.Marshal(struct {
		Version     int             `json:"partitionedQueryExecutionInfoVersion"`
		QueryInfo   query.QueryInfo `json:"queryInfo"`
		QueryRanges []queryRange    `json:"queryRanges"`
	}{planVersion, info, []queryRange{{Min: epk.Format(scope.Min), Max: epk.Format(scope.Max), IsMinInclusive: true}}})
	if err != nil {
		return nil, fmt.Errorf("encode query plan: %w", err)
	}
	return plan, nil
}
