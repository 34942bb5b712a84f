package query

// planOrderBy rewrites a query with ORDER BY to
//
//	SELECT c._rid, [{"item": c.x}] AS orderByItems, <row> AS payload FROM c
//	WHERE ((<where>) AND ({placeholder})) ORDER BY c.x ASC
//
// With DISTINCT the SDK applies TOP or OFFSET LIMIT, because rows that it drops must not
// count.
func (b *Bound) planOrderBy(info *QueryInfo) error {
	q := b.q.root
	if b.inner != nil {
		return refuseAcross("ORDER BY of a sub-query in FROM")
	}
	for _, it := range q.orderBy {
		direction := "Ascending"
		if it.desc {
			direction = "Descending"
		}
		info.OrderBy = append(info.OrderBy, direction)
		info.OrderByExpressions = append(info.OrderByExpressions, printed(it.path))
	}
	var w printer
	w.text("SELECT ")
	if q.top != nil && !q.distinct {
		w.text("TOP ")
		w.count(&count{n: b.window.Limit})
		w.text(" ")
	}
	w.text(q.from[0].name, "._rid, ")
	keys := make([]expr, len(q.orderBy))
	for i, it := range q.orderBy {
		keys[i] = it.path
	}
	row := q.rowExpr()
	w.expr(itemsOf(keys))
	w.text(" AS orderByItems, ")
	w.expr(row)
	w.text(" AS payload ")
	w.from(q.from)
	w.text(" WHERE (")
	if q.where != nil {
		w.text("(")
		w.expr(q.where)
		w.text(") AND ")
	}
	if q.value {
		// Otherwise an undefined value, which is not a row, would give a row without payload.
		w.text("IS_DEFINED(")
		w.expr(row)
		w.text(") AND ")
	}
	w.text("(", FilterPlaceholder, "))")
	w.orderBy(q.orderBy)
	if q.offset != nil && !q.distinct {
		w.text(" OFFSET 0 LIMIT ")
		w.count(&count{n: b.perRange()})
	}
	info.RewrittenQuery = w.b.String()
	return nil
}

// rowExpr returns the row as one expression.
func (q *selectQuery) rowExpr() expr {
	switch {
	case q.star:
		src := q.from[len(q.from)-1]
		return &path{at: &ref{name: src.name, src: src}}
	case q.value:
		return q.items[0].expr
	}
	row := &objectExpr{}
	for _, it := range q.items {
		row.members = append(row.members, objectMember{it.name, it.expr})
	}
	return row
}

// planGroups rewrites a query with GROUP BY to
//
//	SELECT [{"item": c.g}] AS groupByItems, <row> AS payload FROM c GROUP BY c.g
//
// where each aggregate in the row is replaced by its partial result, which the SDK merges.
// Without GROUP BY there is no groupByItems, and SELECT VALUE has a list of one partial result.
func (b *Bound) planGroups(info *QueryInfo) error {
	q := *b.q.root
	if q.distinct && len(q.groupBy) > 0 && !q.selectsEachGroup() {
		return refuseAcross("DISTINCT with GROUP BY, unless it is redundant")
	}
	row, err := q.planRow(info)
	if err != nil {
		return err
	}
	q.distinct, q.top, q.offset, q.limit, q.orderBy = false, nil, nil, nil, nil
	for _, g := range q.groupBy {
		info.GroupByExpressions = append(info.GroupByExpressions, printed(g))
	}
	payload := selectItem{expr: row, alias: "payload", name: "payload"}
	switch {
	case len(q.groupBy) > 0:
		q.items = []selectItem{{expr: itemsOf(q.groupBy), alias: "groupByItems", name: "groupByItems"}, payload}
		q.value = false
	case q.value:
		q.items = []selectItem{{expr: row}}
	default:
		q.items = []selectItem{payload}
	}
	info.RewrittenQuery = q.String()
	return nil
}

// selectsEachGroup reports whether rows differ because SELECT has all expressions of GROUP BY, and
// no aggregate. Otherwise SDKs, which drop repeats before they merge groups, return wrong rows:
// equal partial results of two ranges are no repeats.
func (q *selectQuery) selectsEachGroup() bool {
	selected := map[int]bool{}
	for _, it := range q.items {
		if i, rest, ok := q.groupOf(it.expr); ok && len(rest) == 0 {
			selected[i] = true
		}
	}
	return len(q.aggregates) == 0 && len(selected) == len(q.groupBy)
}

// planRow adds the aggregates of SELECT to the plan and returns the row with their partial
// results.
func (q *selectQuery) planRow(info *QueryInfo) (expr, error) {
	row := &objectExpr{}
	for _, it := range q.items {
		call, ok := it.expr.(*aggregateCall)
		switch {
		case !ok && hasAggregate(it.expr):
			return nil, refuseAcross("an aggregate inside an expression (Compositions of aggregates and other expressions are not allowed.)")
		case ok && q.value:
			info.Aggregates = append(info.Aggregates, planNames[call.kind])
			return &arrayExpr{items: []expr{call.partial()}}, nil
		case q.value:
			return it.expr, nil
		}
		x := it.expr
		info.GroupByAliases = append(info.GroupByAliases, it.name)
		info.GroupByAliasToAggregateType[it.name] = nil
		if ok {
			kind := planNames[call.kind]
			info.GroupByAliasToAggregateType[it.name] = &kind
			x = call.partial()
		}
		row.members = append(row.members, objectMember{it.name, x})
	}
	return row, nil
}

// partial returns the partial result of an aggregate in one range, for the SDK to merge:
// {"item": ...}. AVG has the sum and the count. MIN and MAX also have the count, as item2, by
// which newer SDKs recognise a range without any value.
func (a *aggregateCall) partial() expr {
	call := func(kind aggregateKind) expr { return &aggregateCall{kind: kind, arg: a.arg} }
	object := func(members ...objectMember) expr { return &objectExpr{members: members} }
	counted := objectMember{"count", call(aggCount)}
	switch a.kind {
	case aggAvg:
		return object(objectMember{"item", object(objectMember{"sum", call(aggSum)}, counted)})
	case aggMin:
		return object(objectMember{"item", a}, objectMember{"item2", object(objectMember{"min", a}, counted)})
	case aggMax:
		return object(objectMember{"item", a}, objectMember{"item2", object(objectMember{"max", a}, counted)})
	default:
		return object(objectMember{"item", a})
	}
}

// planDistinctCount plans COUNT over FROM (SELECT DISTINCT ...): the SDK drops the repeats and
// counts the rest. No SDK can merge any other query over a sub-query whose rows depend on all
// ranges.
func (b *Bound) planDistinctCount(info *QueryInfo) error {
	q, inner := b.q.root, b.inner
	if len(q.items) == 1 && len(q.from) == 1 && q.where == nil && len(q.groupBy) == 0 && inner.q.Shape() == (Shape{Distinct: true}) {
		call, ok := q.items[0].expr.(*aggregateCall)
		if ok && call.kind == aggCount && isConstant(call.arg) {
			info.DCountInfo, info.DistinctType = &DCountInfo{}, inner.distinctType()
			if !q.value {
				info.DCountInfo.Alias = q.items[0].name
			}
			info.RewrittenQuery = inner.q.String()
			return nil
		}
	}
	return refuseAcross("a sub-query with DISTINCT, GROUP BY, aggregates, TOP or OFFSET in FROM")
}

// itemsOf returns [{"item": x}, ...].
func itemsOf(list []expr) expr {
	a := &arrayExpr{}
	for _, x := range list {
		a.items = append(a.items, &objectExpr{members: []objectMember{{"item", x}}})
	}
	return a
}

func isConstant(e expr) bool {
	v, ok := e.(*literal)
	return ok && v.v.kind != Undefined
}

// hasAggregate reports whether e contains an aggregate of the query itself.
func hasAggregate(e expr) bool {
	found := false
	var visit func(expr)
	visit = func(e expr) {
		switch e.(type) {
		case *aggregateCall:
			found = true
		case *subqueryExpr:
		default:
			eachPart(e, visit)
		}
	}
	visit(e)
	return found
}
