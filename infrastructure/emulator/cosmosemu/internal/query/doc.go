// Package query is the SQL engine of the Cosmos DB emulator: it parses the
// NoSQL query language, binds parameters, and evaluates a query one raw JSON
// document at a time. It is pure: no I/O, no HTTP, no storage, no goroutines, no
// clock.
//
// # Use
//
//	q, err := query.Parse(text)         // *SyntaxError or *UnsupportedError
//	b, err := q.Bind(params)            // *BindError or *UnsupportedError
//	if at, ok := b.Lookups(paths); ok { // WHERE names the documents: no scan
//	for each candidate document {
//		if b.Match(doc) {
//			row, ok := b.Project(nil, doc) // ok is false: no row for this document
//		}
//	}
//
// With ORDER BY, [Bound.SortKey] gives the key of a document and
// [Bound.Compare] orders two of them; a [SortKey] travels in a continuation as
// [SortKey.AppendJSON] and comes back with [Bound.ParseSortKey]. With COUNT,
// [Bound.NewAggregate] collects documents and makes the one row. With DISTINCT,
// rows with equal [DistinctKey] are one row. The caller owns paging and applies
// [Bound.Window] to the rows. [Bound.Info] makes the query plan. A continuation may
// be tied to [Query.Frame], not to the whole text: an SDK resumes a plan with
// another condition in place of [FilterPlaceholder].
//
// # How it works
//
//	text --lexer, parser--> tree --Bind, compiler--> programs for WHERE, the row, the sort key
//	document --pathTree--> values of the paths a program touches --program--> result
//
// Each program knows the paths it touches. One walk over the raw bytes finds them
// all and stops at the last one. Values stay raw until something looks inside
// them, so numbers keep their spelling and SELECT * copies nothing.
//
// # Invariants
//
// A [Query] is immutable and safe for concurrent use. A [Bound] carries scratch
// space and belongs to one goroutine at a time. Neither keeps nor changes a
// document's bytes after the call that got them returns. [Value]s handed out by
// Lookups and PartitionKey refer to the bytes of the parameters.
//
// Documents must be valid JSON with unique member names per object (of equal
// names the first counts). Other bytes never panic but give unspecified results.
//
// # Semantics
//
// A path to nothing is undefined, and so is an operation on operands of the wrong
// type. WHERE takes a document only if it is exactly true. = and != are true or
// false for any two defined values and compare arrays and objects as JSON; < > <= >=
// and BETWEEN are undefined unless both sides are of the same simple type. AND, OR
// and NOT have three values. ORDER BY sorts undefined, null, false, true, numbers,
// strings, arrays, objects. The grammar, reserved words and results follow the
// .NET SDK's own parser and offline engine (azure-cosmos-dotnet-v3,
// Query/Core/Parser/sql.g4 and tests/.../Query/OfflineEngine) and the published
// reference of the language.
//
// # Not supported
//
// Each of these is an [UnsupportedError] that names the construct:
//
//   - GROUP BY; a property beside an aggregate
//   - the aggregates SUM, AVG, MIN, MAX, COUNTIF, MAKELIST, MAKESET
//   - COUNT with DISTINCT, TOP, ORDER BY or OFFSET LIMIT; across partitions, COUNT
//     inside another expression
//   - JOIN; FROM x IN list; FROM of a path inside the document; FROM of a sub-query;
//     a query without FROM
//   - sub-queries, with EXISTS, ARRAY, ALL, FIRST and LAST
//   - user-defined functions
//   - ORDER BY of anything but a property path; ORDER BY RANK
//   - functions on dates and the clock (DateTime..., GetCurrent...,
//     TicksToDateTime, TimestampToDateTime), on geometry (ST_...), RAND,
//     VectorDistance, FullTextScore, RRF, DocumentId, Choose, ObjectToArray, Int...
//     arithmetic, NumberBin, LastIndexOf, SubstringBefore/After,
//     CONTAINS_ALL/ANY_CI/CS; TRIM, LTRIM and RTRIM with characters to cut
//   - REGEXMATCH with a pattern that is not constant, that Go's regexp package does
//     not have (look-ahead, back references), or with modifiers besides i, m and s
//   - a LIKE pattern with [ but no ]
//   - without parentheses, where two published readings differ: NOT before a
//     comparison, IN, LIKE or BETWEEN; || & | ^ beside a comparison; ?? beside ?:
//   - expressions deeper than 256 levels
//
// # Differences from the service
//
//   - Several ORDER BY keys need no composite index; no index is looked at.
//   - Numbers compare as 64-bit floats, as in the service, but rows keep the
//     spelling a document has (1.0 stays 1.0).
//   - A result that JSON cannot write (1/0, SQRT(-1)) is undefined, and so is a
//     computed value of more than 16 MB.
//   - Lengths and positions in text count Unicode code points.
//   - Full-text functions compare whole words without stemming or stop words, on
//     any path, with or without a full-text index.
//   - ORDER BY of arrays and objects has some fixed order of its own.
//   - Messages of errors are worded differently, without the codes SC1001 and so on.
package query
