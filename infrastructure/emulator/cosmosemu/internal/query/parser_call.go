package query

import (
	"strings"
)

// call parses the arguments of a function; the current token is its "(".
func (p *parser) call(name token) expr {
	upper := strings.ToUpper(name.text)
	p.expect("(")
	switch {
	case p.is("SELECT"):
		p.unsupported(name.pos, upper+" with a sub-query")
		return &literal{}
	case aggregateKinds[upper] != 0:
		return p.aggregateCall(name, aggregateKinds[upper])
	}
	fn := functions[upper]
	if fn == nil {
		p.unknownFunction(name, upper)
		return &literal{}
	}
	c := &callExpr{fn: fn, pos: name.pos}
	if !p.is(")") {
		c.args = p.list(")")
	}
	switch n := len(c.args); {
	case p.err != nil:
	case n < fn.min || fn.max >= 0 && n > fn.max:
		p.syntax(name.pos, "%s takes %s, not %d", fn.name, fn.arity(), n)
	}
	p.expect(")")
	return c
}

// userDefined parses udf.name(...), which only a plan can have.
func userDefined(p *parser, t token) expr {
	if !p.plan {
		p.unsupported(t.pos, "a user-defined function")
		return &literal{}
	}
	p.advance()
	p.expect(".")
	c := &callExpr{fn: &function{name: "udf." + p.name("a function name")}, pos: t.pos}
	p.expect("(")
	if !p.is(")") {
		c.args = p.list(")")
	}
	if hasAggregate(c) {
		p.syntax(t.pos, "an aggregate stands inside of a user-defined function")
	}
	p.expect(")")
	return c
}

func (p *parser) aggregateCall(name token, kind aggregateKind) expr {
	s := p.scope
	switch {
	case s.place == inAggregate:
		p.syntax(name.pos, "%s stands inside of an aggregate", kind)
	case s.place != inSelect:
		p.syntax(name.pos, "%s stands outside of SELECT", kind)
	case p.is("*"):
		p.syntax(p.tok.pos, "%s(*) is written %s(1)", kind, kind)
	}
	s.place = inAggregate
	args := p.list(")")
	s.place = inSelect
	if len(args) > 1 {
		p.syntax(name.pos, "%s takes 1 argument, not %d", kind, len(args))
	}
	p.expect(")")
	if p.err != nil {
		return &literal{}
	}
	c := &aggregateCall{kind: kind, arg: args[0], index: p.out.aggregates}
	p.out.aggregates++
	s.q.aggregates = append(s.q.aggregates, c)
	return c
}
