package query

import (
	"fmt"
	"strconv"
	"strings"
)

// statement parses
//
//	SELECT [DISTINCT] [TOP n] * | VALUE expr | expr [AS name], ...
//	FROM name [[AS] alias] [WHERE expr] [ORDER BY path [ASC|DESC], ...] [OFFSET n LIMIT m]
func (p *parser) statement() *selectQuery {
	p.expect("SELECT")
	p.selection()
	from := p.tok.pos
	if p.tok.kind == tokEOF && p.err == nil {
		p.unsupported(from, "a query without FROM")
	}
	p.from()
	p.where()
	if p.is("GROUP") {
		p.unsupported(p.tok.pos, "GROUP BY")
	}
	p.orderBy()
	p.offsetLimit()
	p.finish()
	p.checkAggregate()
	return p.q
}

// condition parses FROM name [[AS] alias] WHERE expr.
func (p *parser) condition() *selectQuery {
	p.q.condition, p.q.star = true, true
	p.from()
	if !p.is("WHERE") {
		p.unexpected("WHERE")
	}
	p.where()
	p.finish()
	return p.q
}

func (p *parser) selection() {
	p.q.distinct = p.accept("DISTINCT")
	if p.accept("TOP") {
		p.q.top = p.count("TOP")
	}
	p.inSelect = true
	defer func() { p.inSelect = false }()
	switch {
	case p.accept("*"):
		p.q.star = true
		if p.is(",") {
			p.syntax(p.tok.pos, "SELECT * stands alone")
		}
	case p.accept("VALUE"):
		p.q.value = true
		p.q.items = []selectItem{{expr: p.clause()}}
		if p.is(",") || p.is("AS") {
			p.syntax(p.tok.pos, "SELECT VALUE has one expression without a name")
		}
	default:
		p.selectList()
	}
}

// selectList parses the items and names the members of the rows: the alias, else
// the last name of a path, else $1, $2 and so on.
func (p *parser) selectList() {
	names := map[string]bool{}
	unnamed := 0
	for {
		pos := p.tok.pos
		it := selectItem{expr: p.clause()}
		if p.accept("AS") {
			pos = p.tok.pos
			it.alias = p.name("an alias name")
		}
		it.name = it.alias
		if it.name == "" {
			it.name = lastName(it.expr)
		}
		if it.name == "" {
			unnamed++
			it.name = "$" + strconv.Itoa(unnamed)
		}
		if names[it.name] {
			p.syntax(pos, "two items of SELECT are named %q: give one an alias with AS", it.name)
			return
		}
		names[it.name] = true
		p.q.items = append(p.q.items, it)
		if !p.accept(",") {
			return
		}
	}
}

// lastName is the name an item of SELECT gets from a path; the alias of the
// document is filled in by finish.
func lastName(e expr) string {
	p, ok := e.(*path)
	if !ok {
		return ""
	}
	if len(p.steps) == 0 {
		return rootName
	}
	if last := p.steps[len(p.steps)-1]; last.index < 0 {
		return last.name
	}
	return ""
}

// rootName stands for the alias until FROM is read. It is no identifier.
const rootName = "\x00root"

func (p *parser) from() {
	if !p.accept("FROM") {
		p.unexpected("FROM")
		return
	}
	if p.is("(") {
		p.unsupported(p.tok.pos, "a sub-query in FROM")
		return
	}
	pos := p.tok.pos
	p.q.collection = p.name("a source name")
	p.q.alias = p.q.collection
	switch {
	case p.is(".") || p.is("["):
		p.unsupported(pos, "FROM a path inside the document")
	case p.is("IN"):
		p.unsupported(pos, "FROM ... IN (iteration over an array)")
	case p.accept("AS"), p.tok.kind == tokIdent:
		p.q.alias = p.name("an alias name")
	}
	if p.is("JOIN") {
		p.unsupported(p.tok.pos, "JOIN")
	}
	if p.is(",") {
		p.syntax(p.tok.pos, "FROM has one source")
	}
}

func (p *parser) where() {
	if p.accept("WHERE") {
		p.q.where = p.clause()
	}
}

func (p *parser) orderBy() {
	if !p.accept("ORDER") {
		return
	}
	p.expect("BY")
	if p.tok.kind == tokIdent && strings.EqualFold(p.tok.text, "RANK") && p.peek().kind == tokIdent {
		p.unsupported(p.tok.pos, "ORDER BY RANK")
		return
	}
	for {
		pos := p.tok.pos
		key, ok := p.expr().(*path)
		if p.err != nil {
			return
		}
		if !ok || len(key.steps) == 0 {
			p.unsupported(pos, "ORDER BY anything but a property path")
			return
		}
		it := orderItem{path: key}
		if !p.accept("ASC") {
			it.desc = p.accept("DESC")
		}
		p.q.orderBy = append(p.q.orderBy, it)
		if !p.accept(",") {
			return
		}
	}
}

func (p *parser) offsetLimit() {
	pos := p.tok.pos
	if !p.accept("OFFSET") {
		if p.is("LIMIT") {
			p.syntax(pos, "LIMIT needs OFFSET before it: OFFSET 0 LIMIT n")
		}
		return
	}
	p.q.offset = p.count("OFFSET")
	p.expect("LIMIT")
	p.q.limit = p.count("LIMIT")
	if p.q.top != nil {
		p.syntax(pos, "TOP and OFFSET LIMIT exclude each other")
	}
}

// count takes the number of TOP, OFFSET or LIMIT.
func (p *parser) count(clause string) *count {
	switch p.tok.kind {
	case tokParam:
		return &count{param: p.param()}
	case tokNumber:
		if n, err := strconv.ParseInt(p.tok.text, 10, 64); err == nil {
			p.advance()
			return &count{n: n}
		}
	default:
	}
	p.unexpected(fmt.Sprintf("a whole number or a parameter after %s", clause))
	return &count{}
}
