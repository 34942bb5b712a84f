package query

// loop assigns each value of one source of FROM to a variable.
type loop struct {
	index int
	value scalar // of a path; nil: see block
	block *block // of a sub-query
	each  bool   // the elements of the values
}

// runLoops calls f for every combination of values of FROM. It stops and returns false when f
// returns false, or when Setting.Stop ends the query.
func runLoops(loops []loop, e *env, f func() bool) bool {
	if len(loops) == 0 {
		return f()
	}
	l := &loops[0]
	one := func(v Value) bool {
		if e.ended() {
			return false
		}
		e.vars[l.index] = v
		return runLoops(loops[1:], e, f)
	}
	some := func(v Value) bool {
		switch {
		case !l.each:
			return v.kind == Undefined || one(v)
		case v.kind == Array:
			for x := range items(v.raw) {
				if !one(x) {
					return false
				}
			}
		}
		return true
	}
	if l.block != nil {
		return l.block.rows(e, some)
	}
	return some(l.value.eval(e))
}

// block is a sub-query that is evaluated for each row of its outer query.
type block struct {
	loops    []loop
	where    cond // nil: none
	row      scalar
	distinct bool
	group    *grouping // nil: none
}

// rows calls f for each row of the result, until f returns false.
func (n *block) rows(e *env, f func(Value) bool) bool {
	if n.distinct {
		seen, next := map[string]bool{}, f
		f = func(v Value) bool {
			key := string(appendCanonical(nil, v))
			dup := seen[key]
			seen[key] = true
			return dup || next(v)
		}
	}
	row := func() bool {
		v := n.row.eval(e)
		return v.kind == Undefined || f(v)
	}
	if n.group == nil {
		return n.each(e, row)
	}
	all := n.group.start()
	n.each(e, func() bool { all.add(e); return true })
	for _, one := range all.list {
		all.load(e, one)
		if !row() {
			return false
		}
	}
	return true
}

func (n *block) each(e *env, f func() bool) bool {
	return runLoops(n.loops, e, func() bool {
		return n.where != nil && n.where.test(e) != yes || f()
	})
}

type (
	// subqueryNode is a sub-query as a value: its first row, or undefined without rows.
	subqueryNode struct{ *block }
	// existsNode is EXISTS, arrayOfNode is ARRAY.
	existsNode  struct{ *block }
	arrayOfNode struct{ *block }
	// variable is the value of a source, or a value inside it.
	variable struct {
		index int
		rest  []step
	}
)

func (n subqueryNode) eval(e *env) (first Value) {
	n.rows(e, func(v Value) bool { first = v; return false })
	return first
}

func (n existsNode) eval(e *env) Value {
	return boolValue(!n.rows(e, func(Value) bool { return false }))
}

func (n arrayOfNode) eval(e *env) Value {
	var l listBuilder
	n.rows(e, func(v Value) bool { l.add(v); return len(l.b) <= maxValue })
	return l.value()
}

func (n variable) eval(e *env) Value {
	v := e.vars[n.index]
	for _, s := range n.rest {
		v = v.find(s)
	}
	return v
}

func (c *compiler) subquery(e *subqueryExpr) scalar {
	b := c.block(e.query)
	switch e.op {
	case "EXISTS":
		return existsNode{b}
	case "ARRAY":
		return arrayOfNode{b}
	}
	return subqueryNode{b}
}

func (c *compiler) block(q *selectQuery) *block {
	b := &block{loops: c.loops(q.from), distinct: q.distinct}
	if q.where != nil {
		b.where = c.cond(q.where)
	}
	b.group = c.grouping(q)
	b.row = c.row(q)
	return b
}

func (c *compiler) loops(from []*source) (list []loop) {
	for _, src := range from {
		l := loop{index: src.index, each: src.each}
		switch {
		case src.index == isDocument:
			continue
		case src.query != nil:
			l.block = c.block(src.query)
		default:
			l.value = c.path(src.base)
		}
		list = append(list, l)
	}
	return list
}

// row compiles SELECT to one value.
func (c *compiler) row(q *selectQuery) scalar {
	p := c.projector(q)
	if p.value != nil {
		return p.value
	}
	return objectNode{p.keys, p.items}
}
