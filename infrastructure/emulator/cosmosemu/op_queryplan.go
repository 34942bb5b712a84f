package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// planVersion is partitionedQueryExecutionInfoVersion.
const planVersion = 2

// queryPlan answers POST .../docs with the query plan header: how an SDK is to run
// a query over the physical partitions by itself.
func queryPlan(x *exchange) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	b, err := x.parseQuery()
	if err != nil {
		return nil, err
	}
	scope, err := x.planScope(c, b)
	if err != nil {
		return nil, err
	}
	plan, err := planOf(b, scope)
	if err != nil {
		return nil, err
	}
	return ok(http.StatusOK, plan, metadataCharge), nil
}

// planScope is the window the query can find rows in.
func (x *exchange) planScope(c *store.Container, b *query.Bound) (epk.Range, error) {
	def := c.Definition()
	key, err := x.keyHeader()
	if err != nil {
		return epk.Range{}, err
	}
	if key == nil {
		key = keyValues(b.PartitionKey(keyPaths(def)))
	}
	if len(key) == 0 || len(key) > len(def.Paths) || len(key) < len(def.Paths) && !def.Hierarchical || def.KeyVersion == 1 {
		return epk.Full(), nil
	}
	return epk.Point(epk.Append(nil, key, def.Hierarchical)), nil
}

func planOf(b *query.Bound, scope epk.Range) ([]byte, error) {
	type queryRange struct {
		Min            string `json:"min"`
		Max            string `json:"max"`
		IsMinInclusive bool   `json:"isMinInclusive"`
		IsMaxInclusive bool   `json:"isMaxInclusive"`
	}
	info, err := b.Info()
	if err != nil {
		return nil, err
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
