package query

import (
	"strconv"
	"strings"
)

// String returns the query in a canonical form that Parse (or ParseCondition) parses to the
// same query: keywords in upper case, every compound operand in parentheses, strings in double
// quotes.
func (q *Query) String() string { return q.root.String() }

func (q *selectQuery) String() string {
	var w printer
	w.query(q)
	return w.b.String()
}

func (w *printer) query(s *selectQuery) {
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
		w.selection(s)
		if len(s.from) > 0 {
			w.text(" ")
		}
	}
	w.from(s.from)
	if s.where != nil {
		w.text(" WHERE ")
		w.expr(s.where)
	}
	for i, e := range s.groupBy {
		w.text([]string{" GROUP BY ", ", "}[min(i, 1)])
		w.expr(e)
	}
	w.orderBy(s.orderBy)
	if s.offset != nil {
		w.text(" OFFSET ")
		w.count(s.offset)
		w.text(" LIMIT ")
		w.count(s.limit)
	}
}

// from prints the sources. A document without a name is printed as the base of another source.
func (w *printer) from(list []*source) {
	word := "FROM "
	for i, src := range list {
		if i == 0 && src.name == "" && len(list) > 1 && list[1].base != nil && list[1].base.at.src == src {
			continue
		}
		w.text(word)
		w.source(src)
		word = " JOIN "
	}
}

func (w *printer) source(src *source) {
	if src.each {
		w.text(src.name, " IN ")
	}
	own := ""
	switch base := src.base; {
	case src.query != nil:
		w.text("(")
		w.query(src.query)
		w.text(")")
	case base == nil:
		w.text(src.collection)
		own = src.collection
	case base.at.src.query != nil && base.at.src.name == "":
		w.source(base.at.src)
	default:
		w.path(base)
		own = base.lastName()
	}
	if !src.each && src.name != own {
		w.text(" ", src.name)
	}
}

// Frame returns the text of the query without its WHERE, to bind continuations to. It omits
// WHERE because an SDK that resumes a query plan sends the continuation with another condition
// in place of FilterPlaceholder, and a position in the order of rows is valid under any
// condition.
func (q *Query) Frame() string {
	s := *q.root
	s.where = nil
	return s.String()
}

// printer prints queries and expressions. With ids it prints the index of the source of a path
// instead of its name, so that equal texts are equal expressions.
type printer struct {
	b   strings.Builder
	ids bool
}

// printed returns the text of an expression.
func printed(e expr) string {
	var w printer
	w.expr(e)
	return w.b.String()
}

func identity(e expr) string {
	w := printer{ids: true}
	w.expr(e)
	return w.b.String()
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
