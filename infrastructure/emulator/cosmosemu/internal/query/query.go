package query

import "encoding/json"

// Query is a parsed query. It is immutable and safe for concurrent use, so it may be cached by
// its text.
type Query struct {
	root   *selectQuery
	params []string // names in order of first use; paramRef.index is the index

	vars, aggregates, groups int // number of values of each kind in env

	plan     bool              // for Info only
	disputed *UnsupportedError // in a plan, the first construct that two grammars read differently; nil: none
}

// Params are the parameters of a query by name (with the leading @). Each value is JSON text.
type Params map[string]json.RawMessage

// Shape contains the properties of a query that decide whether the gateway can serve it over
// several partitions without the SDK.
type Shape struct {
	OrderBy   bool
	Top       bool
	Offset    bool // OFFSET n LIMIT m
	Distinct  bool
	GroupBy   bool
	Aggregate bool
	Derived   bool // FROM (SELECT ...) of a query whose rows depend on all documents
}

// Plain reports whether the query only filters and projects. The gateway serves only such
// queries across partitions without a query plan.
func (s Shape) Plain() bool { return s == Shape{} }

// Parse reads a query. The error is a *SyntaxError or an *UnsupportedError.
func Parse(text string) (*Query, error) {
	return parse(text, (*parser).statement)
}

// ParsePlan reads a query for its plan. Its Bound serves Info and PartitionKey, not rows. As in
// the service, parameters may have no value, except those of TOP, OFFSET and LIMIT. It also
// accepts user-defined functions, and constructs whose meaning is disputed if the plan does not
// rewrite the query: the refusal follows when the query runs.
func ParsePlan(text string) (*Query, error) {
	return parse(text, func(p *parser) {
		p.plan, p.out.plan = true, true
		p.statement()
		p.out.disputed = p.disputed
	})
}

// ParseCondition reads the condition of a patch, "FROM c WHERE ...". Use only Match of its
// Bound.
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

// derived returns the query in FROM (SELECT ...), whose rows are the documents of q.
func (q *selectQuery) derived() *selectQuery {
	if len(q.from) == 0 {
		return nil
	}
	if src := q.from[0]; src.index == isDocument {
		return src.query
	}
	return nil
}

// spreads reports whether the rows over all ranges are the union of the rows of each range.
func (q *selectQuery) spreads() bool {
	if q.distinct || len(q.groupBy) > 0 || len(q.aggregates) > 0 {
		return false
	}
	inner := q.derived()
	return inner == nil || inner.spreads()
}

// Source returns the two names of FROM: "FROM docs c" gives "docs" and "c", "FROM c" gives "c"
// twice. As in the service, the first may be any name.
func (q *Query) Source() (collection, alias string) {
	if len(q.root.from) == 0 {
		return "", ""
	}
	return q.root.from[0].collection, q.root.from[0].name
}
