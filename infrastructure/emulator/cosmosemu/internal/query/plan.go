package query

// FilterPlaceholder is part of the rewritten query in an ORDER BY query plan. The SDK replaces
// it by the condition at which a range resumes, or by true. It is a syntax error if it is not
// replaced, as in the service.
const FilterPlaceholder = "{documentdb-formattableorderbyquery-filter}"

// QueryInfo is the "queryInfo" member of a query plan, for SDKs that run cross-partition
// queries themselves. Marshal it with encoding/json; the caller adds queryRanges. Its members
// and the forms of the rewritten query are those that the SDKs expect: @azure/cosmos 4.9.3,
// azure-cosmos 4.17.1 of Python, azure-cosmos 4.74.0 of Java.
type QueryInfo struct { //nolint:revive // the name in the protocol
	DistinctType       string   `json:"distinctType"` // None, Ordered, Unordered
	Top                *int64   `json:"top"`
	Offset             *int64   `json:"offset"`
	Limit              *int64   `json:"limit"`
	OrderBy            []string `json:"orderBy"` // Ascending, Descending
	OrderByExpressions []string `json:"orderByExpressions"`
	GroupByExpressions []string `json:"groupByExpressions"`
	// GroupByAliases are the members of the rows, in order, of a query with GROUP BY or
	// aggregates. GroupByAliasToAggregateType contains the aggregate of each, null for none.
	GroupByAliases              []string           `json:"groupByAliases"`
	Aggregates                  []string           `json:"aggregates"` // the one of SELECT VALUE
	GroupByAliasToAggregateType map[string]*string `json:"groupByAliasToAggregateType"`
	RewrittenQuery              string             `json:"rewrittenQuery"` // "": send the original query
	HasSelectValue              bool               `json:"hasSelectValue"`
	DCountInfo                  *DCountInfo        `json:"dCountInfo,omitempty"`
	HasNonStreamingOrderBy      bool               `json:"hasNonStreamingOrderBy"` // always false
}

// DCountInfo makes the SDK count the rows of the rewritten query.
type DCountInfo struct {
	Alias string `json:"dCountAlias"` // of the member; "": SELECT VALUE
}

// Info returns the query plan. The rewritten query refers to the parameters by name, because
// an SDK sends them again with it. The error is an *UnsupportedError if no SDK could merge the
// results.
func (b *Bound) Info() (QueryInfo, error) {
	q := b.q.root
	info := QueryInfo{
		DistinctType: b.distinctType(),
		OrderBy:      []string{}, OrderByExpressions: []string{},
		GroupByExpressions: []string{}, GroupByAliases: []string{}, Aggregates: []string{},
		GroupByAliasToAggregateType: map[string]*string{},
		HasSelectValue:              q.value,
	}
	if w := b.window; q.top != nil {
		info.Top = &w.Limit
	} else if q.offset != nil {
		info.Offset, info.Limit = &w.Offset, &w.Limit
	}
	var err error
	switch {
	case b.q.Shape().Derived:
		err = b.planDistinctCount(&info)
	case len(q.groupBy) > 0 || len(q.aggregates) > 0:
		err = b.planGroups(&info)
	case len(q.orderBy) > 0:
		err = b.planOrderBy(&info)
	case q.distinct && (q.top != nil || q.offset != nil):
		all := *q // the SDK applies the window after it has dropped the repeats of all ranges
		all.top, all.offset, all.limit = nil, nil, nil
		info.RewrittenQuery = all.String()
	case q.offset != nil:
		wider := *q
		wider.offset, wider.limit = &count{}, &count{n: b.perRange()}
		info.RewrittenQuery = wider.String()
	}
	if info.RewrittenQuery != "" && b.q.disputed != nil { // rewriting it would choose one of its meanings
		return info, b.q.disputed
	}
	return info, err
}

func refuseAcross(what string) error {
	return &UnsupportedError{Construct: what + ", across partitions"}
}

// Features returns the names of the features that an SDK needs to run the plan.
func (info *QueryInfo) Features() (list []string) {
	add := func(needed bool, name string) {
		if needed {
			list = append(list, name)
		}
	}
	kinds := map[string]bool{}
	named := 0
	for _, kind := range info.GroupByAliasToAggregateType {
		if kind != nil {
			kinds[*kind] = true
			named++
		}
	}
	for _, kind := range info.Aggregates {
		kinds[kind] = true
	}
	grouped := len(info.GroupByExpressions) > 0
	add(len(kinds) > 0, "Aggregate")
	add(kinds["CountIf"], "CountIf")
	add(grouped, "GroupBy")
	add(!grouped && named > 0, "NonValueAggregate")
	add(named > 1, "MultipleAggregates")
	add(info.DistinctType != "None", "Distinct")
	add(info.DCountInfo != nil, "DCount")
	add(len(info.OrderBy) > 0, "OrderBy")
	add(len(info.OrderBy) > 1, "MultipleOrderBy")
	add(info.Top != nil, "Top")
	add(info.Offset != nil, "OffsetAndLimit")
	return list
}

// perRange returns the number of rows that each range must return for the window over all
// ranges, at most what LIMIT accepts.
func (b *Bound) perRange() int64 { return min(b.window.Offset+b.window.Limit, maxCount) }

// distinctType returns the way in which the SDK must drop repeats. The service returns Ordered
// only for SELECT DISTINCT VALUE of a path with ORDER BY the same path, and None for a constant
// without FROM, which is one row. Source: the comments of the Rust SDK's driver on live accounts.
func (b *Bound) distinctType() string {
	q := b.q.root
	switch {
	case !q.distinct || len(q.aggregates) > 0 && len(q.groupBy) == 0:
		return "None"
	case q.value && len(q.from) == 0 && isConstant(q.items[0].expr):
		return "None"
	case !q.value || len(q.orderBy) != 1:
		return "Unordered"
	}
	if p, ok := q.items[0].expr.(*path); ok && identity(p) == identity(q.orderBy[0].path) {
		return "Ordered"
	}
	return "Unordered"
}
