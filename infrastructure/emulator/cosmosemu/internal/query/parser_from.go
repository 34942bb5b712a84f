package query

// maxJoins is the service's limit of JOINs.
// https://learn.microsoft.com/azure/cosmos-db/concepts-limits#sql-query-limits
const maxJoins = 10

// from parses
//
//	FROM source { JOIN source }
//	source     = collection [ [AS] name ] | name IN collection
//	collection = name { "." name | "[" number "]" | "[" string "]" } | "(" query ")"
//
// The first name is the container, regardless of the name. In a sub-query that is evaluated
// for each document it is a source of an outer query instead.
func (p *parser) from() {
	if !p.accept("FROM") {
		p.unexpected("FROM")
		return
	}
	p.scope.place = inFrom
	p.source()
	for joins := 1; p.is("JOIN"); joins++ {
		if joins > maxJoins {
			p.syntax(p.tok.pos, "a query has at most %d JOINs", maxJoins)
		}
		p.advance()
		p.source()
	}
	if p.is(",") {
		p.syntax(p.tok.pos, "FROM has one source: others follow with JOIN")
	}
	p.scope.place = elsewhere
}

func (p *parser) source() {
	pos := p.tok.pos
	if p.tok.kind == tokIdent && p.peek().word == "IN" {
		name := p.name("a source name")
		p.expect("IN")
		src := p.collection(true)
		if src.index == isDocument { // the elements of the document need a source of their own
			p.addSource(src, pos)
			src = &source{base: &path{at: &ref{name: src.name, pos: pos, src: src}}}
		}
		src.name, src.each = name, true
		p.addSource(src, pos)
		return
	}
	src := p.collection(false)
	if p.accept("AS") || p.tok.kind == tokIdent {
		pos = p.tok.pos
		src.name = p.name("an alias name")
	}
	p.addSource(src, pos)
}

// collection parses the input of a source. Its default name is the name of the container, or
// the last name of a path.
func (p *parser) collection(hidden bool) *source {
	if p.accept("(") {
		src := &source{}
		alone := p.scope.outer == nil && len(p.scope.q.from) == 0
		if alone {
			src.index = isDocument
		}
		src.query = p.subquery(alone)
		p.expect(")")
		return src
	}
	t := p.tok
	p.name("a source name")
	if p.scope.outer != nil || len(p.scope.q.from) > 0 {
		at := p.steps(&path{at: p.nameRef(t, len(p.scope.q.from))})
		return &source{base: at, name: at.lastName()}
	}
	root := &source{collection: t.text, name: t.text, index: isDocument}
	at := p.steps(&path{at: &ref{name: t.text, pos: t.pos, src: root}})
	if hidden || len(at.steps) > 0 {
		root.name = ""
	}
	if len(at.steps) == 0 {
		return root
	}
	p.addSource(root, t.pos)
	return &source{base: at, name: at.lastName()}
}

// steps reads the fixed steps of a path in FROM.
func (p *parser) steps(at *path) *path {
	for p.err == nil {
		var key expr
		switch {
		case p.accept("."):
			key = &literal{v: textValue(p.name("a property name"))}
		case p.accept("["):
			if p.tok.kind != tokString && p.tok.kind != tokNumber {
				p.unexpected("a string or a number")
				return at
			}
			key = p.atom()
			p.expect("]")
		default:
			return at
		}
		longer, ok := lookUp(at, key).(*path)
		if !ok || len(longer.steps) > maxDepth {
			p.syntax(p.tok.pos, "FROM takes a path of names and whole numbers from 0")
			return at
		}
		at = longer
	}
	return at
}

// lastName returns the name of a path without an alias: its last name.
func (at *path) lastName() string {
	if len(at.steps) == 0 {
		return at.at.name
	}
	if last := at.steps[len(at.steps)-1]; last.index < 0 {
		return last.name
	}
	return ""
}

// subquery parses SELECT ... inside brackets. If alone is true, it cannot use the names of its
// outer query.
func (p *parser) subquery(alone bool) *selectQuery {
	back := p.scope
	p.nested = true
	q := p.enterQuery(alone)
	pos := p.tok.pos
	p.query()
	switch {
	case p.err != nil:
	case len(q.orderBy) > 0:
		p.refuse(pos, "SC2202", "'ORDER BY' is not supported in subqueries.")
	case q.top != nil:
		p.refuse(pos, "SC2203", "'TOP' is not supported in subqueries.")
	case q.offset != nil:
		p.refuse(pos, "SC2204", "'OFFSET LIMIT' clause is not supported in subqueries.")
	}
	p.leaveQuery(back)
	return q
}
