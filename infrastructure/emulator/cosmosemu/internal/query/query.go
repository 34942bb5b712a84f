package query

import "encoding/json"

// Query is a parsed query. It is immutable and safe for concurrent use, so a
// server may keep it by its text.
type Query struct {
	root *selectQuery
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
	GroupBy   bool // always false: GROUP BY is refused by Parse
	Aggregate bool // COUNT
}

// Plain reports whether the query only filters and projects: the one kind the
// gateway serves across partitions without a query plan.
func (s Shape) Plain() bool { return s == Shape{} }

// Window cuts the sequence of rows: skip Offset, then at most Limit. It stands
// for TOP as well as for OFFSET ... LIMIT.
type Window struct {
	Offset int64
	Limit  int64 // -1: no limit
}

// Lookup is one document that WHERE points at. Other parts of WHERE may still
// refuse it: Match decides.
type Lookup struct {
	ID string
	// PartitionKey has one value for each path when the same conjunction pins the
	// whole key. Else it is nil: the id may exist once in each logical partition.
	PartitionKey []Value
}

// Parse reads a query. The error is a *SyntaxError or an *UnsupportedError.
func Parse(text string) (*Query, error) { panic("query: parser not there yet") }

// ParseCondition reads the condition of a patch, "FROM c WHERE ...". The result
// has no projection: only Match of its Bound is of use.
func ParseCondition(text string) (*Query, error) { panic("query: parser not there yet") }

// String prints the query in one canonical form that Parse reads back to the same
// query.
func (q *Query) String() string { return "" }

// Shape returns the classification of the query.
func (q *Query) Shape() Shape { return Shape{} }

// Source returns the two names of FROM: "FROM docs c" gives "docs" and "c",
// "FROM c" gives "c" twice.
func (q *Query) Source() (collection, alias string) { return "", "" }
