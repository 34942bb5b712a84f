package query

// grouping describes the groups of a query: by the values of GROUP BY, or one group of all
// rows if there are only aggregates.
type grouping struct {
	keys       []scalar
	at         int // of the first key in env.group
	aggregates []aggregate
}

// aggregate is one call: its argument and its index in env.aggregates.
type aggregate struct {
	kind  aggregateKind
	arg   scalar
	index int
}

// groups collects rows.
type groups struct {
	by    *grouping
	byKey map[string]*group
	list  []*group // in the order of their first rows
}

type group struct {
	key    []Value
	totals []accumulator
}

func (g *grouping) start() *groups {
	all := &groups{by: g, byKey: map[string]*group{}}
	if len(g.keys) == 0 {
		all.make("", nil)
	}
	return all
}

func (all *groups) make(id string, key []Value) *group {
	one := &group{key: key, totals: make([]accumulator, len(all.by.aggregates))}
	for i, a := range all.by.aggregates {
		one.totals[i].kind = a.kind
	}
	all.byKey[id] = one
	all.list = append(all.list, one)
	return one
}

// add adds the current row of e. Values of GROUP BY are compared as by =; undefined is a value
// of its own.
func (all *groups) add(e *env) {
	var id []byte
	for i, k := range all.by.keys {
		v := k.eval(e)
		e.group[all.by.at+i] = v
		id = appendCanonical(id, v)
	}
	one := all.byKey[string(id)]
	if one == nil {
		key := make([]Value, len(all.by.keys))
		for i := range key {
			key[i] = e.group[all.by.at+i].clone()
		}
		one = all.make(string(id), key)
	}
	for i, a := range all.by.aggregates {
		one.totals[i].add(a.arg.eval(e))
	}
}

// load copies the values of a group to the environment of its row.
func (all *groups) load(e *env, one *group) {
	copy(e.group[all.by.at:], one.key)
	for i, a := range all.by.aggregates {
		e.aggregates[a.index] = one.totals[i].result()
	}
}

// groupKey is an expression of GROUP BY, or a path inside one, in SELECT.
type groupKey struct {
	index int
	rest  []step
}

// aggregateResult is the result of an aggregate, in SELECT.
type aggregateResult struct{ index int }

func (n groupKey) eval(e *env) Value {
	v := e.group[n.index]
	for _, s := range n.rest {
		v = v.find(s)
	}
	return v
}

func (n aggregateResult) eval(e *env) Value { return e.aggregates[n.index] }

// grouping compiles GROUP BY and the aggregates; nil if there is neither.
func (c *compiler) grouping(q *selectQuery) *grouping {
	if len(q.groupBy) == 0 && len(q.aggregates) == 0 {
		return nil
	}
	g := &grouping{keys: c.scalars(q.groupBy), at: q.groupAt}
	for _, a := range q.aggregates {
		g.aggregates = append(g.aggregates, aggregate{a.kind, c.scalar(a.arg), a.index})
	}
	return g
}

// fromGroup compiles the expressions of SELECT that have one value per group.
func (c *compiler) fromGroup(e expr) (scalar, bool) {
	for _, q := range c.grouped {
		if i, rest, ok := q.groupOf(e); ok {
			return groupKey{q.groupAt + i, rest}, true
		}
	}
	return nil, false
}
