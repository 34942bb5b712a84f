package query

import (
	"strconv"
	"strings"
)

// String prints the query in one canonical form that Parse (or ParseCondition)
// reads back to the same query: keywords in upper case, every compound operand in
// parentheses, strings in double quotes.
func (q *Query) String() string {
	var w printer
	s := q.root
	if !s.condition {
		w.text("SELECT ")
		if s.distinct {
			w.text("DISTINCT ")
		}
		if s.top != nil {
			w.text("TOP ")
			w.count(s.top)
			w.text(" ")
		}
		w.alias = s.alias
		w.selection(s)
		w.text(" ")
	}
	w.alias = s.alias
	w.text("FROM ", s.collection)
	if s.alias != s.collection {
		w.text(" ", s.alias)
	}
	if s.where != nil {
		w.text(" WHERE ")
		w.expr(s.where)
	}
	w.orderBy(s.orderBy)
	if s.offset != nil {
		w.text(" OFFSET ")
		w.count(s.offset)
		w.text(" LIMIT ")
		w.count(s.limit)
	}
	return w.b.String()
}

// Frame prints the query without its WHERE: what a continuation may be tied to. An
// SDK that resumes a query plan sends the continuation back with another condition
// in place of FilterPlaceholder, and a position in the order of rows means the same
// under any condition.
func (q *Query) Frame() string {
	s := *q.root
	s.where = nil
	return (&Query{root: &s}).String()
}

// printer writes expressions; alias is the name of the document.
type printer struct {
	b     strings.Builder
	alias string
}

func (w *printer) text(parts ...string) {
	for _, s := range parts {
		w.b.WriteString(s)
	}
}

func (w *printer) count(c *count) {
	if c.param != nil {
		w.text(c.param.name)
		return
	}
	w.text(strconv.FormatInt(c.n, 10))
}

func (w *printer) selection(s *selectQuery) {
	switch {
	case s.star:
		w.text("*")
	case s.value:
		w.text("VALUE ")
		w.expr(s.items[0].expr)
	default:
		for i, it := range s.items {
			if i > 0 {
				w.text(", ")
			}
			w.expr(it.expr)
			if it.alias != "" {
				w.text(" AS ", it.alias)
			}
		}
	}
}

func (w *printer) orderBy(list []orderItem) {
	for i, it := range list {
		if i == 0 {
			w.text(" ORDER BY ")
		} else {
			w.text(", ")
		}
		w.path(it.path)
		if it.desc {
			w.text(" DESC")
		} else {
			w.text(" ASC")
		}
	}
}

// expr prints e without parentheses around it.
func (w *printer) expr(e expr) {
	switch e := e.(type) {
	case *literal:
		w.literal(e.v)
	case *paramRef:
		w.text(e.name)
	case *path:
		w.path(e)
	case *member:
		w.operand(e.base)
		w.text("[")
		w.expr(e.index)
		w.text("]")
	case *unaryExpr:
		w.text(e.op)
		if e.op == "NOT" {
			w.text(" ")
		}
		w.operand(e.x)
	case *binaryExpr:
		w.operand(e.x)
		w.text(" ", e.op, " ")
		w.operand(e.y)
	case *logicalExpr:
		for i, x := range e.terms {
			if i > 0 {
				w.text(" ", e.op, " ")
			}
			w.operand(x)
		}
	case *ternaryExpr:
		w.operand(e.cond)
		w.text(" ? ")
		w.operand(e.then)
		w.text(" : ")
		w.operand(e.other)
	case *betweenExpr:
		w.operand(e.x)
		w.not(e.not)
		w.text(" BETWEEN ")
		w.operand(e.low)
		w.text(" AND ")
		w.operand(e.high)
	case *inExpr:
		w.operand(e.x)
		w.not(e.not)
		w.text(" IN (")
		w.list(e.list)
		w.text(")")
	case *likeExpr:
		w.operand(e.x)
		w.not(e.not)
		w.text(" LIKE ")
		w.operand(e.pattern)
		if e.escape != 0 {
			w.text(" ESCAPE ")
			w.literal(textValue(string(e.escape)))
		}
	case *callExpr:
		w.text(e.fn.name, "(")
		w.list(e.args)
		w.text(")")
	case *countCall:
		w.text("COUNT(")
		w.expr(e.arg)
		w.text(")")
	case *arrayExpr:
		w.text("[")
		w.list(e.items)
		w.text("]")
	case *objectExpr:
		w.text("{")
		for i, m := range e.members {
			if i > 0 {
				w.text(", ")
			}
			w.literal(textValue(m.name))
			w.text(": ")
			w.expr(m.x)
		}
		w.text("}")
	}
}

// operand prints e so that it binds tighter than anything around it.
func (w *printer) operand(e expr) {
	switch e.(type) {
	case *unaryExpr, *binaryExpr, *logicalExpr, *ternaryExpr, *betweenExpr, *inExpr, *likeExpr:
		w.text("(")
		w.expr(e)
		w.text(")")
	default:
		w.expr(e)
	}
}

func (w *printer) not(not bool) {
	if not {
		w.text(" NOT")
	}
}

func (w *printer) list(list []expr) {
	for i, x := range list {
		if i > 0 {
			w.text(", ")
		}
		w.expr(x)
	}
}

func (w *printer) literal(v Value) {
	if v.kind == Undefined {
		w.text("undefined")
		return
	}
	w.b.Write(v.AppendJSON(nil))
}

// path prints the alias and the steps: .name where the name is an identifier,
// ["name"] where not, [1] for an index.
func (w *printer) path(p *path) {
	w.text(w.alias)
	for _, s := range p.steps {
		switch {
		case s.index >= 0:
			w.text("[", strconv.FormatInt(s.index, 10), "]")
		case isName(s.name):
			w.text(".", s.name)
		default:
			w.text("[")
			w.literal(textValue(s.name))
			w.text("]")
		}
	}
}

// isName reports whether s is an identifier in the narrow sense: ASCII and not
// reserved.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	return s != "" && keyword(s) == ""
}
