package query

import "slices"

// check does the checks that need the whole query: SELECT * and ORDER BY must fit FROM, and
// with aggregates or GROUP BY every expression of SELECT must have one value per group.
func (t *tokens) check(q *selectQuery, nested bool) {
	if t.err != nil {
		return
	}
	t.checkStar(q)
	for _, it := range q.orderBy {
		if src := it.path.at.src; src.index != isDocument || src.name == "" {
			t.unsupported(it.path.at.pos, "ORDER BY anything but a property path of the document")
		}
	}
	for i, g := range q.groupBy {
		if i == 0 {
			q.groupIDs = make(map[string]int, len(q.groupBy))
		}
		q.groupIDs[identity(g)] = i
	}
	if len(q.groupBy) > 0 || len(q.aggregates) > 0 {
		for _, it := range q.items {
			t.checkGrouped(q, it.expr)
		}
	}
	if nested {
		q.eachQuery(func(inner *selectQuery) { t.check(inner, nested) })
	}
}

func (t *tokens) checkStar(q *selectQuery) {
	named := 0
	for _, src := range q.from {
		if src.name != "" || src.query != nil {
			named++
		}
	}
	switch {
	case !q.star:
	case len(q.from) == 0:
		t.syntax(0, "SELECT * needs FROM")
	case named > 1:
		t.syntax(0, "SELECT * is valid with one source only: say which of them")
	}
}

// checkGrouped refuses a property that may differ within a group.
func (t *tokens) checkGrouped(q *selectQuery, e expr) {
	if t.err != nil {
		return
	}
	if _, _, ok := q.groupOf(e); ok {
		return
	}
	switch e := e.(type) {
	case *aggregateCall:
		return
	case *path:
		if !slices.Contains(q.from, e.at.src) {
			return
		}
		t.syntax(e.at.pos, "%s is in SELECT, but neither in an aggregate nor in GROUP BY", printed(e))
		return
	}
	eachPart(e, func(part expr) { t.checkGrouped(q, part) })
}

// checkComposed refuses an aggregate inside another expression of the statement, as the service
// does. It allows the members "item" and "item2", which SDKs use for the partial results of a query plan.
// Without FROM aggregates may be composed: the reference of COUNT has such a sample.
func (t *tokens) checkComposed(q *selectQuery) {
	if t.err != nil || len(q.from) == 0 {
		return
	}
	for _, it := range q.items {
		if _, alone := it.expr.(*aggregateCall); !alone && composed(it.expr) {
			t.refuse(0, "", "Compositions of aggregates and other expressions are not allowed.")
			return
		}
	}
}

func composed(e expr) (found bool) {
	switch e := e.(type) {
	case *aggregateCall:
		return true
	case *subqueryExpr:
		return false
	case *objectExpr:
		for _, m := range e.members {
			found = found || m.name != "item" && m.name != "item2" && composed(m.x)
		}
		return found
	}
	eachPart(e, func(part expr) { found = found || composed(part) })
	return found
}

// groupOf returns the expression of GROUP BY that equals e or contains it, and the steps from
// there to e.
func (q *selectQuery) groupOf(e expr) (index int, rest []step, ok bool) {
	if len(q.groupBy) == 0 {
		return 0, nil, false
	}
	at, isPath := e.(*path)
	if !isPath {
		index, ok = q.groupIDs[identity(e)]
		return index, nil, ok
	}
	for i, g := range q.groupBy {
		p, ok := g.(*path)
		if ok && p.at.src == at.at.src && len(p.steps) <= len(at.steps) && slices.Equal(p.steps, at.steps[:len(p.steps)]) {
			return i, at.steps[len(p.steps):], true
		}
	}
	return 0, nil, false
}

// eachQuery calls f for the direct sub-queries of q.
func (q *selectQuery) eachQuery(f func(*selectQuery)) {
	var visit func(expr)
	visit = func(e expr) {
		if s, ok := e.(*subqueryExpr); ok {
			f(s.query)
			return
		}
		eachPart(e, visit)
	}
	for _, it := range q.items {
		visit(it.expr)
	}
	for _, src := range q.from {
		if src.query != nil {
			f(src.query)
		}
	}
	if q.where != nil {
		visit(q.where)
	}
	each(q.groupBy, visit)
}

// manyRows reports whether a sub-query may have more than one row.
func (q *selectQuery) manyRows() bool {
	if len(q.aggregates) > 0 && len(q.groupBy) == 0 {
		return false
	}
	return slices.ContainsFunc(q.from, func(src *source) bool {
		return src.each || src.query != nil && src.query.manyRows()
	})
}
