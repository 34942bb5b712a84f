// Package query is the SQL engine of the Cosmos DB emulator: it parses the
// NoSQL query language, binds parameters, and evaluates a query one raw JSON
// document at a time. It is pure: no I/O, no HTTP, no storage, no goroutines, no clock.
//
// # Use
//
//	q, err := query.Parse(text)         // *SyntaxError or *UnsupportedError
//	b, err := q.BindIn(params, setting) // *BindError or *UnsupportedError
//	if at, ok := b.Lookups(paths); ok { // WHERE names the documents: no scan
//	for each candidate document {
//		b.Each(doc, func() bool {        // each row of it that WHERE accepts
//			row, ok := b.AppendRow(nil)  // ok is false: the row is undefined
//
// With ORDER BY, [Bound.SortKey] returns the key of a document and [Bound.Compare] orders two
// keys. A continuation stores a [SortKey] with [SortKey.AppendJSON] and reads it with
// [Bound.ParseSortKey]. With GROUP BY or aggregates, [Bound.NewGroups] collects documents and
// returns the rows. With DISTINCT, rows with equal [DistinctKey] are one row. With FROM
// (SELECT ...), the rows of [Bound.Inner] are the documents; without FROM there is one row and
// no document. The caller does the paging and applies [Bound.Window] to the rows. [Bound.Info]
// returns the query plan. Bind a continuation to [Query.Frame] instead of the whole text,
// because an SDK resumes a plan with another condition in place of [FilterPlaceholder].
//
// # How it works
//
//	text --lexer, parser--> tree --+-- Bind, compiler --> programs, one for each clause
//	                               +-- Info ------------> plan, with a tree of its own, printed
//
//	document --pathTree--> slots ---+
//	FROM: loops over arrays -> vars +--> WHERE --+--> row
//	                                             +--> groups --> group, aggregates --> row
//
// A path starts at a source of FROM, which parser_scope.go resolves. The source is the
// document, whose paths are slots, or a variable. A loop assigns to the variable the elements
// of an array, a part of the document or the rows of a sub-query (block.go). All variables of
// a statement and its sub-queries are in one list, so a sub-query can read the current values
// of its outer query. SELECT of a query with GROUP BY is compiled against the values of the
// group: an expression of GROUP BY, or a path inside one, is its value (group.go).
//
// Each program knows the paths that it reads. One walk over the raw bytes finds all of them
// and stops at the last one. Values stay raw until they are read, so numbers keep their
// spelling and SELECT * copies nothing.
//
// # Grammar
//
//	query      = SELECT [DISTINCT] [TOP n] ( "*" | VALUE expr | expr [AS name] {"," ...} )
//	             [FROM source {JOIN source}] [WHERE expr] [GROUP BY expr {"," expr}]
//	             [ORDER BY path [ASC|DESC] {"," ...}] [OFFSET n LIMIT m]
//	source     = collection [[AS] name] | name IN collection
//	collection = name {"." name | "[" number "]" | "[" string "]"} | "(" query ")"
//	aggregate  = ( COUNT | COUNTIF | SUM | AVG | MIN | MAX | MAKELIST | MAKESET ) "(" expr ")"
//	sub-query  = "(" query ")" | EXISTS "(" query ")" | ARRAY "(" query ")"
//
// The first name of FROM is the container, regardless of the name. In a sub-query it is a
// source of an outer query. The exception is a sub-query that is itself the first source: it
// runs over the container, before its outer query. parser_operator.go contains the grammar of
// expressions.
//
// # Invariants
//
// A [Query] is immutable and safe for concurrent use. A [Bound] contains scratch space and
// must be used by one goroutine at a time. If Setting.Stop has ended it, [Bound.Stopped] is true and
// its rows are incomplete. Neither changes a document's bytes, or keeps them
// after the call returns. The [Value]s that Lookups and PartitionKey return refer to the bytes
// of the parameters.
//
// Documents must be valid JSON with unique member names per object (of equal names the first
// is used). Other bytes never panic but give unspecified results.
//
// # Semantics
//
// A path without a value is undefined, and so is an operation on operands of the wrong type.
// WHERE accepts a document only if it is exactly true. = and != are true or false for any two
// defined values and compare arrays and objects as JSON; < > <= >= and BETWEEN are undefined
// unless both sides have the same simple type. AND, OR and NOT are three-valued. ORDER BY sorts
// undefined, null, false, true, numbers, strings, arrays, objects.
//
// An undefined value gives no row (SELECT VALUE), no member, no element and no row of a
// sub-query. For DISTINCT and GROUP BY it is a value of its own, different from null.
// Aggregates ignore it: without values COUNT and SUM are 0, and AVG, MIN and MAX are undefined.
// SUM and AVG are undefined if any value is not a number, MIN and MAX if any is an array or
// object; otherwise MIN and MAX compare as ORDER BY does. A scalar sub-query without rows is
// undefined. FROM uses a path only if it is defined, and IN only the elements of arrays.
//
// The grammar, reserved words and results follow the .NET SDK's own parser and offline engine
// (azure-cosmos-dotnet-v3, Query/Core/Parser/sql.g4 and tests/.../Query/OfflineEngine) and the
// published reference of the language.
//
// # Not supported
//
// Each of these is an [UnsupportedError] that names the construct:
//
//   - across partitions: DISTINCT with GROUP BY unless it is redundant, ORDER BY of a sub-query in
//     FROM, and a sub-query there whose rows depend on all documents, except COUNT of SELECT DISTINCT
//   - ORDER BY with GROUP BY, of which the plan of the service keeps only the groups, so that SDKs
//     return them unsorted; ORDER BY of anything but a property path of the
//     document; ORDER BY RANK
//   - ALL, FIRST and LAST of a sub-query
//   - user-defined functions, which have a plan but do not run
//   - functions on geometry (ST_...), VectorDistance, FullTextScore, RRF, LastIndexOf,
//     SubstringBefore/After, LastSubstringBefore/After
//   - REGEXMATCH with a pattern that is not constant or that Go's regexp package does not
//     support (look-ahead, back references), or with modifiers other than i, m, s and x
//   - a LIKE pattern with [ but no ]
//   - expressions without parentheses whose two published grammars differ: NOT before a
//     comparison, IN, LIKE or BETWEEN; || & | ^ next to a comparison; ?? next to ?:. The first
//     two have a plan if it does not rewrite the query
//   - expressions deeper than 256 levels
//
// # Differences from the service
//
//   - Without FROM, an aggregate may be part of another expression.
//   - A scalar sub-query that may have several rows is refused when it is parsed.
//   - The functions of the clock have one value for a request.
//   - DateTimeDiff in nanoseconds overflows more than 292 years from 1970.
//   - No index is used. The caller checks [Bound.OrderKeys] and [Bound.FiltersProperties]
//     against the indexing policy.
//   - Numbers compare as 64-bit floats, as in the service, but rows keep the
//     spelling a document has (1.0 stays 1.0).
//   - A result that JSON cannot represent (1/0, SQRT(-1)) is undefined, and so is a
//     computed value of more than 16 MB.
//   - Lengths and positions in text count Unicode code points.
//   - Full-text functions compare whole words without stemming or stop words, on
//     any path, with or without a full-text index.
//   - ORDER BY of arrays and objects has a stable order that differs from the service's.
//   - Error messages have other texts, without codes such as SC1001.
package query
