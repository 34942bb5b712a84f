package query

import "math"

// primary parses a literal, parameter, path, function call, constructor or parentheses, and
// the look-ups after it: .name and [index].
func (p *parser) primary() expr {
	x := p.atom()
	for p.err == nil {
		var index expr
		switch {
		case p.accept("."):
			index = &literal{v: textValue(p.name("a property name"))}
		case p.accept("["):
			pos := p.tok.pos
			index = p.expr()
			p.checkIndexer(pos, index)
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

// checkIndexer refuses a computed index. Only texts, numbers and parameters name a member.
func (t *tokens) checkIndexer(pos int, index expr) {
	if u, ok := index.(*unaryExpr); ok {
		index = u.x
	}
	switch index.(type) {
	case *literal, *paramRef:
	default:
		if t.err == nil {
			t.refuse(pos, "SC2990", "The specified query includes 'member indexer' which is currently not supported.")
		}
	}
}

// lookUp returns x[index], as a longer path if possible.
func lookUp(x, index expr) expr {
	from, ok := x.(*path)
	key, constant := index.(*literal)
	if ok && constant {
		if s, ok := stepOf(key.v); ok {
			return &path{at: from.at, steps: append(from.steps[:len(from.steps):len(from.steps)], s)}
		}
	}
	return &member{base: x, index: index}
}

// stepOf converts a name or a whole number from 0 to a step.
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
			if p.is("SELECT") {
				return p.subqueryExpr(t.pos, "")
			}
			x := p.grouped()
			p.expect(")")
			return &parens{x: bare(x)}
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
	case "EXISTS", "ARRAY":
		p.advance()
		p.expect("(")
		return p.subqueryExpr(t.pos, t.word)
	case "udf":
		return userDefined(p, t)
	case "VALUE":
		p.syntax(t.pos, "VALUE stands once, right after SELECT and its DISTINCT or TOP")
	default:
		p.unexpected("an expression")
	}
	return &literal{}
}

// identifier parses a function call or the alias at the start of a path.
func (p *parser) identifier() expr {
	t := p.tok
	p.advance()
	switch {
	case p.is("("):
		return p.call(t)
	case p.is("."), p.is("["):
	case t.text == "NaN":
		return &literal{v: floatValue(math.NaN())}
	case t.text == "Infinity":
		return &literal{v: floatValue(math.Inf(1))}
	}
	return &path{at: p.nameRef(t, -1)}
}

// subqueryExpr parses a sub-query and the bracket after it.
func (p *parser) subqueryExpr(pos int, op string) expr {
	if p.scope.place == inAggregate {
		p.syntax(pos, "an aggregate cannot take a sub-query")
	}
	e := &subqueryExpr{op: op, query: p.subquery(false)}
	p.expect(")")
	if op == "" && e.query.manyRows() {
		p.syntax(pos, "a sub-query that is a value has one row at most: this one may have more (ARRAY makes an array of them)")
	}
	return e
}

func (p *parser) param() *paramRef {
	t := p.tok
	p.advance()
	index, ok := p.params[t.text]
	if !ok {
		index = len(p.out.params)
		if p.params == nil {
			p.params = make(map[string]int)
		}
		p.params[t.text] = index
		p.out.params = append(p.out.params, t.text)
	}
	return &paramRef{name: t.text, index: index, pos: t.pos}
}

func (p *parser) object() expr {
	p.expect("{")
	o := &objectExpr{}
	seen := map[string]bool{}
	for !p.is("}") {
		if p.tok.kind != tokString && p.tok.kind != tokIdent { // a reserved word needs quotes
			p.unexpected("a member name, in quotes if it is a reserved word")
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
				p.unexpected("a member name, in quotes if it is a reserved word")
			}
		}
	}
	p.expect("}")
	return o
}
