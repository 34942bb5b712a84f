package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// statement parses a query, which must be the whole text.
func (p *parser) statement() {
	p.out.root = p.enterQuery(true)
	p.query()
	if p.err == nil && p.tok.kind != tokEOF {
		p.unexpected("the end of the query")
	}
	p.leaveQuery(nil)
	p.check(p.out.root, p.nested)
	p.checkComposed(p.out.root)
}

// query parses
//
//	SELECT [DISTINCT] [TOP n] * | VALUE expr | expr [AS name], ...
//	[FROM ...] [WHERE expr] [GROUP BY expr, ...] [ORDER BY path [ASC|DESC], ...] [OFFSET n LIMIT m]
func (p *parser) query() {
	p.expect("SELECT")
	p.selection()
	if p.is("FROM") || !p.is(")") && p.tok.kind != tokEOF && !p.is("WHERE") {
		p.from()
	}
	p.where()
	p.groupBy()
	p.orderBy()
	p.offsetLimit()
}

// condition parses FROM name [[AS] alias] WHERE expr.
func (p *parser) condition() {
	q := p.enterQuery(true)
	p.out.root = q
	q.condition, q.star = true, true
	pos := p.tok.pos
	p.from()
	if len(q.from) != 1 || q.from[0].query != nil {
		p.syntax(pos, "the condition is on one document: FROM c WHERE ...")
	}
	if !p.is("WHERE") {
		p.unexpected("WHERE")
	}
	p.where()
	if p.err == nil && p.tok.kind != tokEOF {
		p.unexpected("the end of the query")
	}
	p.leaveQuery(nil)
	p.check(q, p.nested)
}

func (p *parser) selection() {
	q := p.scope.q
	q.distinct = p.accept("DISTINCT")
	if p.accept("TOP") {
		q.top = p.count("TOP")
	}
	p.scope.place = inSelect
	switch {
	case p.accept("*"):
		q.star = true
		if p.is(",") {
			p.syntax(p.tok.pos, "SELECT * stands alone")
		}
	case p.accept("VALUE"):
		q.value = true
		q.items = []selectItem{{expr: p.clause()}}
		if p.is(",") || p.is("AS") {
			p.syntax(p.tok.pos, "SELECT VALUE has one expression without a name")
		}
	default:
		p.selectList()
	}
	p.scope.place = elsewhere
}

// selectList parses the items and names the members of the rows: by the alias, otherwise by
// the last name of a path, otherwise $1, $2 and so on.
func (p *parser) selectList() {
	names := map[string]bool{}
	unnamed := 0
	for {
		pos := p.tok.pos
		it := selectItem{expr: p.clause()}
		if p.accept("AS") || p.tok.kind == tokIdent {
			pos = p.tok.pos
			it.alias = p.name("an alias name")
		}
		it.name = it.alias
		if it.name == "" {
			it.name = memberName(it.expr)
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
		p.scope.q.items = append(p.scope.q.items, it)
		if !p.accept(",") {
			return
		}
	}
}

// memberName returns the name of the property that an expression reads, of a path or of a computed value.
func memberName(e expr) string {
	switch e := e.(type) {
	case *path:
		return e.lastName()
	case *member:
		if name, ok := e.index.(*literal); ok && name.v.kind == String {
			return name.v.Text()
		}
	}
	return ""
}

func (p *parser) where() {
	if p.accept("WHERE") {
		p.scope.q.where = p.clause()
	}
}

func (p *parser) groupBy() {
	pos := p.tok.pos
	if !p.accept("GROUP") {
		return
	}
	p.expect("BY")
	q := p.scope.q
	if q.star {
		p.syntax(pos, "SELECT * cannot stand with GROUP BY")
	}
	q.groupAt = p.out.groups
	for {
		q.groupBy = append(q.groupBy, p.clause())
		p.out.groups++
		if !p.accept(",") {
			break
		}
	}
	if p.is("ORDER") {
		p.unsupported(p.tok.pos, "ORDER BY with GROUP BY")
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
		p.scope.q.orderBy = append(p.scope.q.orderBy, it)
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
	q := p.scope.q
	q.offset = p.count("OFFSET")
	p.expect("LIMIT")
	q.limit = p.count("LIMIT")
	if q.top != nil {
		p.syntax(pos, "TOP and OFFSET LIMIT exclude each other")
	}
}

// maxCount is the highest number of TOP, OFFSET and LIMIT that the service accepts.
const maxCount = math.MaxInt32

// count reads the number of TOP, OFFSET or LIMIT.
func (p *parser) count(clause string) *count {
	switch p.tok.kind {
	case tokParam:
		return &count{param: p.param()}
	case tokNumber:
		if n, err := strconv.ParseInt(p.tok.text, 10, 64); err == nil {
			if n > maxCount {
				p.syntax(p.tok.pos, "%s is at most %d", clause, maxCount)
			}
			p.advance()
			return &count{n: n}
		}
	default:
	}
	p.unexpected(fmt.Sprintf("a whole number or a parameter after %s", clause))
	return &count{}
}
