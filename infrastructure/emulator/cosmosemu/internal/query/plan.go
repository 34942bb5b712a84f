package query

import "math"

// FilterPlaceholder stands in the rewritten query of an ORDER BY query plan. The
// SDK puts the condition from which a range goes on in its place, or true. Left
// as it is, it is a syntax error, as in the service.
const FilterPlaceholder = "{documentdb-formattableorderbyquery-filter}"

// QueryInfo is the "queryInfo" member of a query plan, as the gateway answers it to
// SDKs that run cross-partition queries themselves. Marshal it with encoding/json;
// the caller adds queryRanges. Its members and the forms of the rewritten query are
// those that @azure/cosmos 4.9.3 works with (queryExecutionContext,
// request/ErrorResponse.d.ts).
type QueryInfo struct { //nolint:revive // the name the protocol gives it
	DistinctType                string            `json:"distinctType"` // None, Ordered, Unordered
	Top                         *int64            `json:"top"`
	Offset                      *int64            `json:"offset"`
	Limit                       *int64            `json:"limit"`
	OrderBy                     []string          `json:"orderBy"` // Ascending, Descending
	OrderByExpressions          []string          `json:"orderByExpressions"`
	GroupByExpressions          []string          `json:"groupByExpressions"` // always empty
	GroupByAliases              []string          `json:"groupByAliases"`     // always empty
	Aggregates                  []string          `json:"aggregates"`         // Count, of SELECT VALUE COUNT(...)
	GroupByAliasToAggregateType map[string]string `json:"groupByAliasToAggregateType"`
	RewrittenQuery              string            `json:"rewrittenQuery"` // "": send the query as it is
	HasSelectValue              bool              `json:"hasSelectValue"`
	HasNonStreamingOrderBy      bool              `json:"hasNonStreamingOrderBy"` // always false
}

// Info makes the query plan of the query. The rewritten query keeps the
// parameters by name, since an SDK sends them again with it. The error is an
// *UnsupportedError: an SDK can merge COUNT only where it stands alone.
func (b *Bound) Info() (QueryInfo, error) {
	s := b.q.root
	info := QueryInfo{
		DistinctType: b.distinctType(),
		OrderBy:      []string{}, OrderByExpressions: []string{},
		GroupByExpressions: []string{}, GroupByAliases: []string{}, Aggregates: []string{},
		GroupByAliasToAggregateType: map[string]string{},
		HasSelectValue:              s.value,
	}
	if w := b.window; s.top != nil {
		info.Top = &w.Limit
	} else if s.offset != nil {
		info.Offset, info.Limit = &w.Offset, &w.Limit
	}
	for _, it := range s.orderBy {
		direction := "Ascending"
		if it.desc {
			direction = "Descending"
		}
		info.OrderBy = append(info.OrderBy, direction)
		info.OrderByExpressions = append(info.OrderByExpressions, printed(s.alias, it.path))
	}
	var err error
	switch {
	case s.aggregate:
		info.RewrittenQuery, err = b.rewriteAggregate(&info)
	case len(s.orderBy) > 0:
		info.RewrittenQuery = b.rewriteOrderBy()
	case s.offset != nil:
		wider := *s
		wider.offset, wider.limit = &count{}, &count{n: b.perRange()}
		info.RewrittenQuery = (&Query{root: &wider}).String()
	}
	return info, err
}

// perRange is how many rows each range has to give for the window over all ranges.
func (b *Bound) perRange() int64 {
	w := b.window
	if w.Offset > math.MaxInt64-w.Limit {
		return math.MaxInt64
	}
	return w.Offset + w.Limit
}

// distinctType tells the SDK how to drop repeats: Ordered if equal rows come one
// after the other, which is certain when the row and the sort key have the same
// paths; else Unordered.
func (b *Bound) distinctType() string {
	s := b.q.root
	switch {
	case !s.distinct:
		return "None"
	case len(s.orderBy) == 0 || s.star || len(s.items) != len(s.orderBy):
		return "Unordered"
	}
	keys := map[string]bool{}
	for _, it := range s.orderBy {
		keys[printed(s.alias, it.path)] = true
	}
	for _, it := range s.items {
		p, ok := it.expr.(*path)
		if !ok || !keys[printed(s.alias, p)] {
			return "Unordered"
		}
		delete(keys, printed(s.alias, p))
	}
	return "Ordered"
}

// rewriteOrderBy makes
//
//	SELECT c._rid, [{"item": c.x}] AS orderByItems, <row> AS payload FROM c
//	WHERE ((<where>) AND ({placeholder})) ORDER BY c.x ASC
//
// With DISTINCT the cut to TOP or OFFSET LIMIT is left to the SDK, because rows that
// it drops must not count.
func (b *Bound) rewriteOrderBy() string {
	s := b.q.root
	w := printer{alias: s.alias}
	w.text("SELECT ")
	if s.top != nil && !s.distinct {
		w.text("TOP ")
		w.count(&count{n: b.window.Limit})
		w.text(" ")
	}
	w.text(s.alias, "._rid, [")
	for i, it := range s.orderBy {
		if i > 0 {
			w.text(", ")
		}
		w.text(`{"item": `)
		w.path(it.path)
		w.text("}")
	}
	w.text("] AS orderByItems, ")
	row := b.rowExpr()
	w.expr(row)
	w.text(" AS payload FROM ", s.collection)
	if s.alias != s.collection {
		w.text(" ", s.alias)
	}
	w.text(" WHERE (")
	if s.where != nil {
		w.text("(")
		w.expr(s.where)
		w.text(") AND ")
	}
	if s.value {
		// An undefined value is no row, but would be one without payload here.
		w.text("IS_DEFINED(")
		w.expr(row)
		w.text(") AND ")
	}
	w.text("(", FilterPlaceholder, "))")
	w.orderBy(s.orderBy)
	if s.offset != nil && !s.distinct {
		w.text(" OFFSET 0 LIMIT ")
		w.count(&count{n: b.perRange()})
	}
	return w.b.String()
}

// rowExpr is the row as one expression.
func (b *Bound) rowExpr() expr {
	s := b.q.root
	switch {
	case s.star:
		return &path{}
	case s.value:
		return s.items[0].expr
	}
	row := &objectExpr{}
	for _, it := range s.items {
		row.members = append(row.members, objectMember{it.name, it.expr})
	}
	return row
}

// rewriteAggregate makes SELECT VALUE [{"item": COUNT(1)}] of SELECT VALUE COUNT(1),
// and SELECT {"n": {"item": COUNT(1)}} AS payload of SELECT COUNT(1) AS n.
func (b *Bound) rewriteAggregate(info *QueryInfo) (string, error) {
	s := *b.q.root
	for _, it := range s.items {
		if _, ok := it.expr.(*countCall); !ok {
			return "", &UnsupportedError{Construct: "an aggregate inside an expression, across partitions"}
		}
	}
	item := func(x expr) expr { return &objectExpr{members: []objectMember{{"item", x}}} }
	if s.value {
		info.Aggregates = append(info.Aggregates, "Count")
		s.items = []selectItem{{expr: &arrayExpr{items: []expr{item(s.items[0].expr)}}}}
		return (&Query{root: &s}).String(), nil
	}
	row := &objectExpr{}
	for _, it := range s.items {
		info.GroupByAliasToAggregateType[it.name] = "Count"
		row.members = append(row.members, objectMember{it.name, item(it.expr)})
	}
	s.items = []selectItem{{expr: row, alias: "payload", name: "payload"}}
	return (&Query{root: &s}).String(), nil
}

// printed is the text of an expression.
func printed(alias string, e expr) string {
	w := printer{alias: alias}
	w.expr(e)
	return w.b.String()
}
