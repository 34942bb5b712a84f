package query

// finish checks that the text ends and that identifiers are the alias.
func (p *parser) finish() {
	switch {
	case p.err != nil:
		return
	case p.is("GROUP"):
		p.unsupported(p.tok.pos, "GROUP BY")
		return
	case p.is("JOIN"):
		p.unsupported(p.tok.pos, "JOIN")
		return
	case p.tok.kind != tokEOF:
		p.unexpected("the end of the query")
		return
	}
	for _, root := range p.roots {
		if root.text != p.q.alias {
			p.syntax(root.pos, "unknown name %q: the document is %q (a property is %s.%s, a string has quotes)",
				root.text, p.q.alias, p.q.alias, root.text)
			return
		}
	}
	for i := range p.q.items {
		if p.q.items[i].name != rootName {
			continue
		}
		p.q.items[i].name = p.q.alias
		for j := range p.q.items {
			if j != i && p.q.items[j].name == p.q.alias {
				p.syntax(p.roots[0].pos, "two items of SELECT are named %q: give one an alias with AS", p.q.alias)
				return
			}
		}
	}
}

// checkAggregate refuses what cannot stand beside COUNT without GROUP BY.
func (p *parser) checkAggregate() {
	if p.err != nil || p.counts == 0 {
		return
	}
	p.q.aggregate = true
	switch {
	case p.outside >= 0:
		p.unsupported(p.outside, "a property beside an aggregate (it would need GROUP BY)")
	case p.q.distinct:
		p.unsupported(0, "DISTINCT with an aggregate")
	case p.q.top != nil:
		p.unsupported(0, "TOP with an aggregate")
	case len(p.q.orderBy) > 0:
		p.unsupported(0, "ORDER BY with an aggregate")
	case p.q.offset != nil:
		p.unsupported(0, "OFFSET LIMIT with an aggregate")
	}
}
