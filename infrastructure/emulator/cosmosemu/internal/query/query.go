package query

import "encoding/json"

// Query is a parsed query. It is immutable and safe for concurrent use, so a
// server may keep it by its text.
type Query struct {
	root   *selectQuery
	params []string // names in order of first use; paramRef.index points here

	vars, aggregates, groups int // how many values of each kind env has
}

// Params are the parameters of a query by name (with the leading @), each one
// JSON text as the request carried it.
type Params map[string]json.RawMessage

// Shape is what the gateway looks at to decide whether it can serve a query over
// several partitions by itself.
type Shape struct {
	OrderBy   bool
	Top       bool
	Offset    bool // OFFSET n LIMIT m
	Distinct  bool
	GroupBy   bool
	Aggregate bool
	Derived   bool // FROM (SELECT ...) of a query whose rows depend on all documents
}

// Plain reports whether the query only filters and projects: the one kind the
// gateway serves across partitions without a query plan.
func (s Shape) Plain() bool { return s == Shape{} }

// Parse reads a query. The error is a *SyntaxError or an *UnsupportedError.
func Parse(text string) (*Query, error) {
	return parse(text, (*parser).statement)
}

// ParseCondition reads the condition of a patch, "FROM c WHERE ...". The result
// selects the whole document; only Match of its Bound is of use.
func ParseCondition(text string) (*Query, error) {
	return parse(text, (*parser).condition)
}

func parse(text string, rule func(*parser)) (*Query, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	rule(p)
	if p.err != nil {
		return nil, p.err
	}
	return p.out, nil
}

// Shape returns the classification of the query.
func (q *Query) Shape() Shape {
	return Shape{
		OrderBy:   len(q.root.orderBy) > 0,
		Top:       q.root.top != nil,
		Offset:    q.root.offset != nil,
		Distinct:  q.root.distinct,
		GroupBy:   len(q.root.groupBy) > 0,
		Aggregate: len(q.root.aggregates) > 0,
		Derived:   q.root.derived() != nil && !q.root.derived().spreads(),
	}
}

// derived is the query that makes the documents of q: FROM (SELECT ...).
func (q *selectQuery) derived() *selectQuery {
	if len(q.from) == 0 {
		return nil
	}
	if src := q.from[0]; src.index == isDocument {
		return src.query
	}
	return nil
}

// spreads reports whether the rows over all ranges are those of each range.
func (q *selectQuery) spreads() bool {
	if q.distinct || q.top != nil || q.offset != nil || len(q.groupBy) > 0 || len(q.aggregates) > 0 {
		return false
	}
	inner := q.derived()
	return inner == nil || inner.spreads()
}

// Source returns the two names of FROM: "FROM docs c" gives "docs" and "c",
// "FROM c" gives "c" twice. The service lets the first one be any name.
func (q *Query) Source() (collection, alias string) {
	if len(q.root.from) == 0 {
		return "", ""
	}
	return q.root.from[0].collection, q.root.from[0].name
}
