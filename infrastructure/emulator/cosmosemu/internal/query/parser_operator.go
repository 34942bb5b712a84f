package query

// precedence returns the precedence of a binary operator, from 1 for the weakest binding; 0
// for others. Source: Query/Core/Parser/sql.g4 of the .NET SDK; it lacks the shifts, which are
// placed as in JavaScript.
func precedence(op string) int {
	switch op {
	case "||":
		return 1
	case "|":
		return 2
	case "^":
		return 3
	case "&":
		return 4
	case "=", "!=":
		return 5
	case "<", ">", "<=", ">=":
		return 6
	case "<<", ">>", ">>>":
		return 7
	case "+", "-":
		return 8
	case "*", "/", "%":
		return 9
	}
	return 0
}

// expr parses a whole expression:
//
//	expr      = coalesce [ "?" expr ":" expr ]
//	coalesce  = or { "??" or }
//	or        = and { OR and }
//	and       = predicate { AND predicate }
//	predicate = binary [ [NOT] ( IN (...) | LIKE binary [ESCAPE 'c'] | BETWEEN binary AND binary ) ]
//	binary    = unary { operator unary }, by precedence, left to right
//	unary     = { "-" | "+" | "~" | NOT } primary
//
// An expression without parentheses is refused if two published grammars of the language
// differ on its meaning: NOT before a comparison, bit operators and || next to a comparison,
// ?? next to ?:.
func (p *parser) expr() expr { return bare(p.grouped()) }

// grouped parses as expr, but keeps the mark of the outermost parentheses.
func (p *parser) grouped() expr {
	p.enter()
	defer p.leave()
	pos := p.tok.pos
	cond := p.coalesce()
	if !p.accept("?") {
		return cond
	}
	then := p.grouped()
	p.expect(":")
	other := p.grouped()
	for _, x := range []expr{cond, then, other} {
		if b, ok := x.(*binaryExpr); ok && b.op == "??" {
			p.unsupported(pos, "?? beside ?: without parentheses")
		}
	}
	return &ternaryExpr{cond: bare(cond), then: bare(then), other: bare(other)}
}

func (p *parser) coalesce() expr {
	x := p.or()
	for p.accept("??") {
		x = &binaryExpr{op: "??", x: bare(x), y: bare(p.or())}
	}
	return x
}

func (p *parser) or() expr { return p.logical("OR", p.and) }

func (p *parser) and() expr { return p.logical("AND", p.predicate) }

func (p *parser) logical(op string, term func() expr) expr {
	x := term()
	if !p.is(op) {
		return x
	}
	l := &logicalExpr{op: op, terms: []expr{bare(x)}}
	for p.accept(op) {
		l.terms = append(l.terms, bare(term()))
	}
	return l
}

func (p *parser) predicate() expr {
	pos := p.tok.pos
	x := p.binary(1)
	not := false
	if p.is("NOT") {
		p.advance()
		not = true
		if !p.is("IN") && !p.is("LIKE") && !p.is("BETWEEN") {
			p.unexpected("IN, LIKE or BETWEEN after NOT")
		}
	}
	switch {
	case p.accept("IN"):
		p.refuseNot(pos, x)
		p.expect("(")
		e := &inExpr{not: not, x: bare(x), list: p.list(")")}
		p.expect(")")
		return e
	case p.accept("LIKE"):
		p.refuseNot(pos, x)
		e := &likeExpr{not: not, x: bare(x), pattern: bare(p.binary(1)), pos: pos}
		if p.accept("ESCAPE") {
			e.escape = p.escape()
		}
		return e
	case p.accept("BETWEEN"):
		p.refuseNot(pos, x)
		e := &betweenExpr{not: not, x: bare(x), low: bare(p.binary(1))}
		p.expect("AND")
		e.high = bare(p.binary(1))
		return e
	}
	return x
}

// list reads one or more expressions up to a closing bracket, which it does not consume.
func (p *parser) list(end string) []expr {
	if p.is(end) {
		p.unexpected("an expression")
		return nil
	}
	list := []expr{p.expr()}
	for p.accept(",") {
		list = append(list, p.expr())
	}
	return list
}

// binary parses operators of at least a precedence.
func (p *parser) binary(least int) expr {
	pos := p.tok.pos
	x := p.unary()
	for {
		op := p.tok.word
		own := precedence(op)
		if own == 0 || own < least || p.tok.kind != tokPunct {
			return x
		}
		p.advance()
		right := p.tok.pos
		y := p.binary(own + 1)
		p.checkOperand(op, pos, x)
		p.checkOperand(op, right, y)
		x = &binaryExpr{op: op, x: bare(x), y: bare(y)}
	}
}

func (p *parser) unary() expr {
	switch {
	case p.is("-"), p.is("+"), p.is("~"), p.is("NOT"):
		p.enter()
		defer p.leave()
		op := p.tok.word
		p.advance()
		return &unaryExpr{op: op, x: bare(p.unary())}
	}
	return p.primary()
}

// bare removes parentheses.
func bare(x expr) expr {
	for {
		g, ok := x.(*parens)
		if !ok {
			return x
		}
		x = g.x
	}
}

func isComparison(op string) bool {
	switch op {
	case "=", "!=", "<", ">", "<=", ">=":
		return true
	}
	return false
}
