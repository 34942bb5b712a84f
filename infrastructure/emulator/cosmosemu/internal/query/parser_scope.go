package query

// scope is a query during parsing, with its unresolved names. They can be resolved only after
// FROM, which follows SELECT.
type scope struct {
	outer *scope // of the outer query; nil: outer names are not visible
	q     *selectQuery
	open  []openRef
	place place
	few   [4]openRef // backing array of open
}

// openRef is an unresolved name, and the number of sources that it may refer to.
type openRef struct {
	ref     *ref
	visible int // counted from the first source; -1: all
}

// place is the position of the parser in a query.
type place uint8

const (
	elsewhere place = iota
	inSelect
	inAggregate
	inFrom
)

// enterQuery starts a query inside the current one, or an independent one.
func (p *parser) enterQuery(alone bool) *selectQuery {
	if p.scope != nil {
		p.enter()
	}
	s := &p.first
	if s.q != nil {
		s = &scope{}
	}
	s.q, s.outer, s.open = &selectQuery{}, p.scope, s.few[:0]
	s.q.from = s.q.one[:0]
	if alone {
		s.outer = nil
	}
	p.scope = s
	return s.q
}

// leaveQuery ends the current query. Names that its FROM does not contain are passed to the
// outer query.
func (p *parser) leaveQuery(back *scope) {
	if back != nil {
		p.leave()
	}
	s := p.scope
	p.scope = back
	for _, o := range s.open {
		if s.q.resolve(o) {
			continue
		}
		if s.outer == nil {
			p.unknownName(s.q, o.ref)
			return
		}
		o.visible = -1
		if s.outer.place == inFrom {
			o.visible = len(s.outer.q.from)
		}
		s.outer.open = append(s.outer.open, o)
	}
}

func (q *selectQuery) resolve(o openRef) bool {
	list := q.from
	if o.visible >= 0 {
		list = list[:o.visible]
	}
	for _, src := range list {
		if src.name != "" && src.name == o.ref.name {
			o.ref.src = src
			return true
		}
	}
	return false
}

func (p *parser) unknownName(q *selectQuery, r *ref) {
	for _, src := range q.from {
		if src.name != "" {
			p.syntax(r.pos, "Identifier '%s' could not be resolved. The document is %q (a property is %s.%s, a string has quotes)", r.name, src.name, src.name, r.name)
			return
		}
	}
	p.syntax(r.pos, "Identifier '%s' could not be resolved. FROM gives no such name (a string has quotes)", r.name)
}

// nameRef returns a name that is resolved later.
func (p *parser) nameRef(t token, visible int) *ref {
	if len(p.refs) == 0 {
		p.refs = make([]ref, 4)
	}
	r := &p.refs[0]
	p.refs = p.refs[1:]
	r.name, r.pos = t.text, t.pos
	p.scope.open = append(p.scope.open, openRef{r, visible})
	return r
}

// addSource adds a source to FROM, and for a variable a new index in env.vars.
func (p *parser) addSource(src *source, pos int) {
	q := p.scope.q
	for _, other := range q.from {
		if src.name != "" && src.name == other.name {
			p.syntax(pos, "FROM has two sources named %q", src.name)
		}
	}
	if src.index != isDocument {
		src.index = p.out.vars
		p.out.vars++
	}
	q.from = append(q.from, src)
}
