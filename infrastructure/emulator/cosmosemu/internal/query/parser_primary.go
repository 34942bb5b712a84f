package query

import (
	"fmt"
	"strings"
)

// primary parses a literal, parameter, path, function call, constructor or
// parentheses, and what is looked up inside: .name and [index].
func (p *parser) primary() expr {
	x := p.atom()
	for p.err == nil {
		var index expr
		switch {
		case p.accept("."):
			index = &literal{v: textValue(p.name("a property name"))}
		case p.accept("["):
			index = p.expr()
			p.expect("]")
		default:
			return x
		}
		x = lookUp(bare(x), index)
		if at, ok := x.(*path); ok && len(at.steps) > maxDepth {
			p.tooDeep(p.tok.pos)
		}
	}
	return x
}

// lookUp makes x[index] a longer path when both allow it.
func lookUp(x, index expr) expr {
	from, ok := x.(*path)
	key, constant := index.(*literal)
	if ok && constant {
		if s, ok := stepOf(key.v); ok {
			return &path{steps: append(from.steps[:len(from.steps):len(from.steps)], s)}
		}
	}
	return &member{base: x, index: index}
}

// stepOf makes a step of a name or of a whole number from 0.
func stepOf(v Value) (step, bool) {
	switch v.kind {
	case String:
		return step{name: v.Text(), index: -1}, true
	case Number:
		if n, ok := v.integer(); ok && n >= 0 {
			return step{index: n}, true
		}
	default:
	}
	return step{}, false
}

func (p *parser) atom() expr {
	t := p.tok
	switch t.kind {
	case tokString:
		p.advance()
		return &literal{v: textValue(t.text)}
	case tokNumber:
		p.advance()
		return &literal{v: numberValue(t.text)}
	case tokParam:
		return p.param()
	case tokIdent:
		return p.identifier()
	case tokKeyword:
		return p.keywordAtom()
	case tokPunct:
		switch t.word {
		case "(":
			p.advance()
			x := p.grouped()
			p.expect(")")
			return &group{x: bare(x)}
		case "[":
			p.advance()
			a := &arrayExpr{}
			if !p.is("]") {
				a.items = p.list("]")
			}
			p.expect("]")
			return a
		case "{":
			return p.object()
		}
	case tokEOF:
	}
	p.unexpected("an expression")
	return &literal{}
}

func (p *parser) keywordAtom() expr {
	t := p.tok
	switch t.word {
	case "true", "false":
		p.advance()
		return &literal{v: boolValue(t.word == "true")}
	case "null":
		p.advance()
		return &literal{v: Value{kind: Null}}
	case "undefined":
		p.advance()
		return &literal{}
	case "LEFT", "RIGHT":
		p.advance()
		return p.call(t)
	case "SELECT":
		p.unsupported(t.pos, "a sub-query")
	case "EXISTS", "ARRAY":
		p.unsupported(t.pos, t.word+" with a sub-query")
	case "udf":
		p.unsupported(t.pos, "a user-defined function")
	case "VALUE":
		p.syntax(t.pos, "VALUE stands once, right after SELECT and its DISTINCT or TOP")
	default:
		p.unexpected("an expression")
	}
	return &literal{}
}

// identifier is a function call, or the alias at the start of a path.
func (p *parser) identifier() expr {
	t := p.tok
	p.advance()
	if p.is("(") {
		return p.call(t)
	}
	p.roots = append(p.roots, t)
	if !p.inCount && p.inSelect && p.outside < 0 {
		p.outside = t.pos
	}
	return &path{}
}

func (p *parser) param() *paramRef {
	t := p.tok
	p.advance()
	index, ok := p.params[t.text]
	if !ok {
		index = len(p.q.params)
		if p.params == nil {
			p.params = make(map[string]int)
		}
		p.params[t.text] = index
		p.q.params = append(p.q.params, t.text)
	}
	return &paramRef{name: t.text, index: index, pos: t.pos}
}

func (p *parser) object() expr {
	p.expect("{")
	o := &objectExpr{}
	seen := map[string]bool{}
	for !p.is("}") {
		if p.tok.kind != tokString {
			p.unexpected("a member name in quotes")
			return o
		}
		m := objectMember{name: p.tok.text}
		if seen[m.name] {
			p.syntax(p.tok.pos, "the object has two members %q", m.name)
		}
		seen[m.name] = true
		p.advance()
		p.expect(":")
		m.x = p.expr()
		o.members = append(o.members, m)
		if !p.is("}") {
			p.expect(",")
			if p.is("}") {
				p.unexpected("a member name in quotes")
			}
		}
	}
	p.expect("}")
	return o
}

// call parses the arguments of a function; the current token is its "(".
func (p *parser) call(name token) expr {
	upper := strings.ToUpper(name.text)
	p.expect("(")
	switch {
	case p.is("SELECT"):
		p.unsupported(name.pos, upper+" with a sub-query")
		return &literal{}
	case upper == "COUNT":
		return p.countCall(name)
	case aggregates[upper]:
		p.unsupported(name.pos, "the aggregate "+upper)
		return &literal{}
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
	case fn.known > 0 && n > fn.known:
		p.unsupported(name.pos, fmt.Sprintf("%s with %d arguments", fn.name, n))
	}
	p.expect(")")
	return c
}

func (p *parser) unknownFunction(name token, upper string) {
	if serviceFunctions[upper] || strings.HasPrefix(upper, "ST_") || strings.HasPrefix(upper, "DATETIME") {
		p.unsupported(name.pos, "the function "+name.text)
		return
	}
	p.syntax(name.pos, "there is no function %q", name.text)
}

func (p *parser) countCall(name token) expr {
	switch {
	case p.inCount:
		p.syntax(name.pos, "COUNT stands inside COUNT")
	case !p.inSelect:
		p.syntax(name.pos, "COUNT stands outside of SELECT")
	case p.is("*"):
		p.syntax(p.tok.pos, "COUNT(*) is written COUNT(1)")
	}
	p.inCount = true
	args := p.list(")")
	p.inCount = false
	if len(args) > 1 {
		p.syntax(name.pos, "COUNT takes 1 argument, not %d", len(args))
	}
	p.expect(")")
	if p.err != nil {
		return &literal{}
	}
	c := &countCall{arg: args[0], index: p.counts}
	p.counts++
	return c
}
