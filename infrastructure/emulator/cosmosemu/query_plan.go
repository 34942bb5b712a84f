package cosmosemu

import (
	"encoding/json"
	"fmt"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
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
