package query

// env contains the inputs of a program for one document.
type env struct {
	slots   []Value // by pathTree slot
	*shared         // nil: the query uses none of it
}

// shared contains the values that all programs of a query share.
type shared struct {
	vars       []Value // by source.index
	group      []Value // by selectQuery.groupAt
	aggregates []Value // results, by aggregateCall.index

	stop    func() bool // Setting.Stop
	steps   uint
	stopped bool
}

// stepsPerStop is the number of loop steps between two calls of Setting.Stop, which may read a clock.
const stepsPerStop = 1024

// ended reports whether the loops of the query must end.
func (s *shared) ended() bool {
	if s.steps++; s.steps%stepsPerStop == 0 && s.stop != nil && s.stop() {
		s.stopped = true
	}
	return s.stopped
}

// scalar computes a value. Scalars and conds contain scratch space, so a program must be used
// by one goroutine at a time.
type scalar interface{ eval(e *env) Value }

// compiler turns expressions into programs. Parts without a path become constants.
type compiler struct {
	b       *Bound
	tree    *pathTree
	grouped []*selectQuery // queries whose SELECT is being compiled, with GROUP BY
	folded  int            // bytes of folded constants
	err     error
}

func (c *compiler) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *compiler) scalar(e expr) scalar {
	if len(c.grouped) > 0 {
		if key, ok := c.fromGroup(e); ok {
			return key
		}
	}
	switch e := e.(type) {
	case *literal:
		return constant{e.v}
	case *paramRef:
		if c.b.isMissing(e) {
			return unbound{}
		}
		return constant{c.b.args[e.index]}
	case *path:
		return c.path(e)
	case *member:
		n := lookup{c.scalar(e.base), c.scalar(e.index)}
		return c.fold(n, n.base, n.index)
	case *unaryExpr:
		if e.op != "NOT" {
			n := unaryNode{e.op, c.scalar(e.x)}
			return c.fold(n, n.x)
		}
	case *binaryExpr:
		if !isComparison(e.op) {
			n := binaryNode{e.op, c.scalar(e.x), c.scalar(e.y)}
			return c.fold(n, n.x, n.y)
		}
	case *ternaryExpr:
		return choice{c.cond(e.cond), c.scalar(e.then), c.scalar(e.other)}
	case *callExpr:
		return c.call(e)
	case *aggregateCall:
		return aggregateResult{e.index}
	case *subqueryExpr:
		return c.subquery(e)
	case *arrayExpr:
		n := arrayNode{c.scalars(e.items)}
		return c.fold(n, n.items...)
	case *objectExpr:
		n := objectNode{}
		for _, m := range e.members {
			n.keys = append(n.keys, appendString(nil, m.name))
			n.values = append(n.values, c.scalar(m.x))
		}
		return c.fold(n, n.values...)
	}
	return truth{c.cond(e)}
}

// unbound is a value in a plan that only the service knows, so it is no constant.
type unbound struct{}

func (unbound) eval(*env) Value { return Value{} }

func (c *compiler) scalars(list []expr) []scalar {
	out := make([]scalar, len(list))
	for i, e := range list {
		out[i] = c.scalar(e)
	}
	return out
}

func (c *compiler) path(p *path) scalar {
	if p.at.src.index != isDocument {
		return variable{p.at.src.index, p.steps}
	}
	if len(p.steps) > 0 && p.steps[0].index < 0 {
		if e, ok := c.b.computed[p.steps[0].name]; ok {
			return c.computed(e, p.steps[1:])
		}
	}
	slot, rest := c.tree.add(p.steps)
	return pathNodeRef{slot, rest}
}

func (c *compiler) call(e *callExpr) scalar {
	switch {
	case e.fn.name == "REGEXMATCH":
		return c.regex(e)
	case e.fn.now != nil:
		return c.clock(e)
	case e.fn.name == "RAND":
		return c.random(e)
	case e.fn.apply == nil: // user-defined, in a plan
		return unbound{}
	}
	n := &callNode{fn: e.fn, args: c.scalars(e.args)}
	n.values = make([]Value, len(n.args))
	return c.fold(n, n.args...)
}

// fold computes n now if all its inputs are constant. Above maxValue bytes of constants in
// total, further ones are computed for each document instead.
func (c *compiler) fold(n scalar, inputs ...scalar) scalar {
	if c.folded > maxValue {
		return n
	}
	for _, x := range inputs {
		if _, ok := x.(constant); !ok {
			return n
		}
	}
	v := n.eval(&env{})
	c.folded += len(v.raw)
	return constant{parsedNumber(v)}
}

// value returns the value of an expression that does not depend on the document.
func (c *compiler) value(e expr) (Value, bool) {
	switch e := e.(type) {
	case *path:
		return Value{}, false
	case *literal:
		return e.v, true
	case *paramRef:
		return c.b.args[e.index], !c.b.isMissing(e)
	}
	k, ok := (&compiler{b: c.b, tree: newPathTree()}).scalar(e).(constant)
	return k.v, ok
}

// projector builds a row.
type projector struct {
	value scalar   // SELECT VALUE
	keys  [][]byte // otherwise the names of the members, with quotes
	items []scalar
}

func (c *compiler) projector(q *selectQuery) (p projector) {
	if len(q.groupBy) > 0 {
		c.grouped = append(c.grouped, q)
		defer func() { c.grouped = c.grouped[:len(c.grouped)-1] }()
	}
	switch {
	case q.star:
		p.value = c.scalar(&path{at: &ref{src: q.from[len(q.from)-1]}})
	case q.value:
		p.value = c.scalar(q.items[0].expr)
	}
	for _, it := range q.items {
		if p.value != nil {
			break
		}
		p.keys = append(p.keys, appendString(nil, it.name))
		p.items = append(p.items, c.scalar(it.expr))
	}
	return p
}

func (p *projector) append(dst []byte, e *env) ([]byte, bool) {
	if p.value != nil {
		return appendScalar(dst, p.value, e)
	}
	return appendMembers(dst, p.keys, p.items, e)
}
