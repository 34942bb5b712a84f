package query

import "bytes"

// tri is a three-valued truth. Everything that is not a Boolean is unknown, in particular
// undefined.
type tri uint8

const (
	unknown tri = iota
	no
	yes
)

// cond computes a tri.
type cond interface{ test(e *env) tri }

type (
	// isTrue converts a value to a condition.
	isTrue struct{ scalar }
	// not, and, or implement three-valued logic: false AND anything is false, true OR
	// anything is true.
	not struct{ x cond }
	and struct{ terms []cond }
	or  struct{ terms []cond }
	// comparison is = != < > <= >=.
	comparison struct {
		op   string
		x, y scalar
	}
	// textEquals is path = 'constant'. It is separate because it is by far the most common
	// condition.
	textEquals struct {
		slot int
		want []byte
	}
	// oneOf is IN with constants only: strings are looked up by hash, others compared one by one.
	oneOf struct {
		x      scalar
		texts  map[string]bool
		others []Value
	}
	// oneOfThese is IN with other expressions.
	oneOfThese struct {
		x    scalar
		list []scalar
	}
)

func truthOf(b bool) tri {
	if b {
		return yes
	}
	return no
}

func (c *compiler) cond(e expr) cond {
	switch e := e.(type) {
	case *unaryExpr:
		if e.op == "NOT" {
			return not{c.cond(e.x)}
		}
	case *logicalExpr:
		terms := make([]cond, len(e.terms))
		for i, t := range e.terms {
			terms[i] = c.cond(t)
		}
		if e.op == "AND" {
			return and{terms}
		}
		return or{terms}
	case *binaryExpr:
		if isComparison(e.op) {
			return compare2(e.op, c.scalar(e.x), c.scalar(e.y))
		}
	case *betweenExpr:
		x := c.scalar(e.x)
		return negate(e.not, and{[]cond{
			comparison{">=", x, c.scalar(e.low)},
			comparison{"<=", x, c.scalar(e.high)},
		}})
	case *inExpr:
		return negate(e.not, c.in(e))
	case *likeExpr:
		return negate(e.not, c.like(e))
	}
	return isTrue{c.scalar(e)}
}

func negate(yes bool, x cond) cond {
	if yes {
		return not{x}
	}
	return x
}

func compare2(op string, x, y scalar) cond {
	if op == "=" {
		if _, ok := x.(constant); ok {
			x, y = y, x
		}
		p, ok1 := x.(pathNodeRef)
		k, ok2 := y.(constant)
		if ok1 && ok2 && p.rest == nil && k.v.kind == String {
			return textEquals{p.slot, k.v.text()}
		}
	}
	return comparison{op, x, y}
}

func (c *compiler) in(e *inExpr) cond {
	x, list := c.scalar(e.x), c.scalars(e.list)
	n := oneOf{x: x, texts: make(map[string]bool)}
	for _, s := range list {
		k, ok := s.(constant)
		switch {
		case !ok:
			return oneOfThese{x, list}
		case k.v.kind == String:
			n.texts[k.v.Text()] = true
		case k.v.kind != Undefined:
			n.others = append(n.others, k.v)
		}
	}
	return n
}

func (n isTrue) test(e *env) tri {
	v := n.eval(e)
	if v.kind != Boolean {
		return unknown
	}
	return truthOf(v.truth)
}

func (n not) test(e *env) tri {
	switch n.x.test(e) {
	case yes:
		return no
	case no:
		return yes
	default:
		return unknown
	}
}

func (n and) test(e *env) tri {
	result := yes
	for _, t := range n.terms {
		switch t.test(e) {
		case no:
			return no
		case unknown:
			result = unknown
		case yes:
		}
	}
	return result
}

func (n or) test(e *env) tri {
	result := no
	for _, t := range n.terms {
		switch t.test(e) {
		case yes:
			return yes
		case unknown:
			result = unknown
		case no:
		}
	}
	return result
}

func (n textEquals) test(e *env) tri {
	v := &e.slots[n.slot]
	switch {
	case v.kind == Undefined:
		return unknown
	case v.kind != String:
		return no
	case v.form == escaped:
		return truthOf(bytes.Equal(unescape(v.raw), n.want))
	default:
		return truthOf(bytes.Equal(v.raw, n.want))
	}
}

func (n comparison) test(e *env) tri {
	a, b := n.x.eval(e), n.y.eval(e)
	if a.kind == Undefined || b.kind == Undefined {
		return unknown
	}
	switch n.op {
	case "=":
		return truthOf(equal(a, b))
	case "!=":
		return truthOf(!equal(a, b))
	}
	order, ok := ordered(a, b)
	if !ok {
		return unknown
	}
	switch n.op {
	case "<":
		return truthOf(order < 0)
	case ">":
		return truthOf(order > 0)
	case "<=":
		return truthOf(order <= 0)
	default:
		return truthOf(order >= 0)
	}
}

func (n oneOf) test(e *env) tri {
	v := n.x.eval(e)
	switch v.kind {
	case Undefined:
		return unknown
	case String:
		return truthOf(n.texts[string(v.text())])
	default:
		for _, other := range n.others {
			if equal(v, other) {
				return yes
			}
		}
		return no
	}
}

func (n oneOfThese) test(e *env) tri {
	v := n.x.eval(e)
	if v.kind == Undefined {
		return unknown
	}
	for _, s := range n.list {
		if other := s.eval(e); other.kind != Undefined && equal(v, other) {
			return yes
		}
	}
	return no
}
