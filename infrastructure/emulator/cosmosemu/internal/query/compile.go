package query

// env is what a program sees of one document.
type env struct {
	slots  []Value // by pathTree slot
	counts []int64 // results of COUNT, for the row of an aggregate
}

// scalar computes a value. Scalars and conds have scratch space of their own, so a
// program belongs to one goroutine.
type scalar interface{ eval(e *env) Value }

// compiler turns expressions into programs. Parts without a path become constants.
type compiler struct {
	b      *Bound
	tree   *pathTree
	folded int // bytes of constants computed
	err    error
}

func (c *compiler) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *compiler) scalar(e expr) scalar {
	switch e := e.(type) {
	case *literal:
		return constant{e.v}
	case *paramRef:
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
	case *countCall:
		c.b.counts = append(c.b.counts, c.scalar(e.arg))
		return countNode{e.index}
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

func (c *compiler) scalars(list []expr) []scalar {
	out := make([]scalar, len(list))
	for i, e := range list {
		out[i] = c.scalar(e)
	}
	return out
}

func (c *compiler) path(p *path) pathNodeRef {
	slot, rest := c.tree.add(p.steps)
	return pathNodeRef{slot, rest}
}

func (c *compiler) call(e *callExpr) scalar {
	if e.fn.name == "REGEXMATCH" {
		return c.regex(e)
	}
	n := &callNode{fn: e.fn, args: c.scalars(e.args)}
	n.values = make([]Value, len(n.args))
	return c.fold(n, n.args...)
}

// fold computes n now if all it depends on is constant. Constants take up to
// maxValue bytes in all; what is beyond is computed for each document.
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
		return c.b.args[e.index], true
	}
	k, ok := (&compiler{b: c.b, tree: newPathTree()}).scalar(e).(constant)
	return k.v, ok
}

// projector makes a row.
type projector struct {
	value scalar   // SELECT VALUE
	keys  [][]byte // else the members, with quotes
	items []scalar
}

func (c *compiler) projector(s *selectQuery) projector {
	if s.value {
		return projector{value: c.scalar(s.items[0].expr)}
	}
	var p projector
	for _, it := range s.items {
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
