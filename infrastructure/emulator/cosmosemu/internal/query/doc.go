// Package query is the SQL engine of the Cosmos DB emulator: it parses the
// NoSQL query language, binds parameters, and evaluates a query one raw JSON
// document at a time. It is pure: no I/O, no HTTP, no storage, no goroutines, no
// clock.
//
// # Use
//
//	q, err := query.Parse(text)         // *SyntaxError or *UnsupportedError
//	b, err := q.Bind(params)            // *BindError
//	if at, ok := b.Lookups(paths); ok { // WHERE names the documents: no scan
//	for each candidate document {
//		if b.Match(doc) {
//			row, ok := b.Project(nil, doc) // ok is false: no row for this document
//		}
//	}
//
// With ORDER BY, [Bound.SortKey] gives the key of a document and
// [Bound.Compare] orders two of them; a [SortKey] travels in a continuation as
// [SortKey.AppendJSON] and comes back with [ParseSortKey]. With COUNT,
// [Bound.NewAggregate] collects documents and makes the one row. With DISTINCT,
// rows with equal [DistinctKey] are one row. The caller owns paging and applies
// [Bound.Window].
//
// # Invariants
//
// A [Query] is immutable and safe for concurrent use. A [Bound] carries scratch
// space and belongs to one goroutine at a time. Neither keeps nor changes a
// document's bytes after the call that got them returns, except that [Value]s
// handed out by Lookups and PartitionKey refer to the bound parameters.
//
// Documents must be valid JSON with unique member names per object (of equal
// names the first counts). Other bytes never panic but give unspecified results.
package query
