package query

// Bound is a query with its parameters, ready to run over documents. It carries
// scratch space: use it from one goroutine at a time.
type Bound struct {
	q *Query
}

// Bind puts the parameters in. The error is a *BindError. Parameters the query
// does not name are ignored.
func (q *Query) Bind(params Params) (*Bound, error) { return &Bound{q: q}, nil }

// Query returns the query this was bound from.
func (b *Bound) Query() *Query { return b.q }

// Match reports whether WHERE is exactly true for the document.
func (b *Bound) Match(doc []byte) bool { return false }

// Project appends the row that the SELECT clause makes of the document, as JSON
// text. ok is false, and nothing is appended, when there is no row: SELECT VALUE
// of something undefined. SELECT * appends the bytes of doc as they are.
// Project must not be called for an aggregate query: see NewAggregate.
func (b *Bound) Project(dst, doc []byte) (row []byte, ok bool) { return dst, false }

// IsSelectAll reports whether Project would return each document unchanged, so
// that a caller need not call it.
func (b *Bound) IsSelectAll() bool { return false }

// Window returns what TOP or OFFSET ... LIMIT ask for.
func (b *Bound) Window() Window { return Window{Limit: -1} }

// Lookups returns the documents that WHERE names, when it is certain that no other
// document can match: c.id = x, c.id IN (...), either of them inside AND, and an
// OR of such. paths are the partition key paths of the container, as "/a/b". ok is
// false when WHERE names none: then documents must be scanned. Lookups come in the
// order of the query, without repeats; none at all with ok means that nothing
// can match.
func (b *Bound) Lookups(paths []string) (at []Lookup, ok bool) { return nil, false }

// PartitionKey returns the values that WHERE pins the partition key to, by
// equality (or IS_NULL) in its top-level AND. It holds the leading paths that are
// pinned: as many values as paths when the whole key is, none when the first path
// is free. A pinned value may be Undefined: NOT IS_DEFINED(c.pk).
func (b *Bound) PartitionKey(paths []string) []Value { return nil }

// SortKey is the ORDER BY key of one document: one value per ORDER BY item. It
// holds copies and does not refer to the document.
type SortKey []Value

// SortKey computes the key of a document; nil without ORDER BY.
func (b *Bound) SortKey(doc []byte) SortKey { return nil }

// Compare orders two keys of this query as ORDER BY asks, with each item's
// direction: negative when x comes first. Types sort as undefined, null, false,
// true, numbers, strings, arrays, objects.
func (b *Bound) Compare(x, y SortKey) int { return 0 }

// AppendJSON appends the key as a JSON array for a continuation token. An
// undefined value is written as an empty object inside an array of one.
func (k SortKey) AppendJSON(dst []byte) []byte { return dst }

// ParseSortKey reads what SortKey.AppendJSON wrote. It refuses a key that does not
// have as many values as the query has ORDER BY items.
func (b *Bound) ParseSortKey(text []byte) (SortKey, error) { return nil, nil }

// DistinctKey appends a form of the row that is equal for equal JSON values
// (member order, number spelling and string escapes do not matter).
func DistinctKey(dst, row []byte) []byte { return dst }

// Aggregate collects the documents of a COUNT query.
type Aggregate struct{ b *Bound }

// NewAggregate starts an aggregation. Only for queries whose Shape says Aggregate.
func (b *Bound) NewAggregate() *Aggregate { return &Aggregate{b: b} }

// Add counts one matching document.
func (a *Aggregate) Add(doc []byte) {}

// AppendRow appends the one row of the result.
func (a *Aggregate) AppendRow(dst []byte) []byte { return dst }
