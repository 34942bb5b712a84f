package query

// Computed is a computed property of a container. A query that names the property gets the
// value of the expression.
type Computed struct {
	Name  string
	value expr
}

// ParseComputed reads the query of a computed property, SELECT VALUE expr FROM c.
// The error is a *SyntaxError or an *UnsupportedError.
func ParseComputed(name, text string) (Computed, error) {
	q, err := Parse(text)
	if err != nil {
		return Computed{}, err
	}
	r := q.root
	if !r.value || len(r.from) != 1 || r.from[0].index != isDocument || r.from[0].query != nil || len(q.params) > 0 ||
		r.where != nil || r.distinct || q.Shape() != (Shape{}) {
		return Computed{}, &SyntaxError{Msg: "a computed property is SELECT VALUE and an expression on the document, FROM c, without any other clause"}
	}
	return Computed{name, r.items[0].expr}, nil
}

// computed compiles a path that starts at a computed property. Computed properties cannot be
// used in its expression.
func (c *compiler) computed(e expr, rest []step) scalar {
	all, grouped := c.b.computed, c.grouped
	c.b.computed, c.grouped = nil, nil
	v := c.scalar(e)
	c.b.computed, c.grouped = all, grouped
	for _, s := range rest {
		key := constant{floatValue(float64(s.index))}
		if s.index < 0 {
			key = constant{textValue(s.name)}
		}
		v = lookup{v, key}
	}
	return v
}

// randomNode is RAND, which has another value each time.
type randomNode struct{ next func() float64 }

func (n randomNode) eval(*env) Value { return floatValue(n.next()) }

func (c *compiler) random(e *callExpr) scalar {
	if c.b.random == nil {
		c.fail(&UnsupportedError{Pos: e.pos, Construct: "RAND where there are no random numbers"})
		return constant{}
	}
	return randomNode{c.b.random}
}

// clock returns the value of a function of the clock, which is the same for the whole request.
func (c *compiler) clock(e *callExpr) scalar {
	if c.b.now.IsZero() {
		c.fail(&UnsupportedError{Pos: e.pos, Construct: e.fn.name + " where there is no clock"})
		return constant{}
	}
	return constant{e.fn.now(c.b.now)}
}
