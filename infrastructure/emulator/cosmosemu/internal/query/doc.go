// Package query is the SQL engine of the Cosmos DB emulator: it parses the
// NoSQL query language, binds parameters, and evaluates a query one raw JSON
// document at a time. It is pure: no I/O, no HTTP, no storage, no goroutines, no
// clock.
//
// # Use
//
//	q, err := query.Parse(text)         // *SyntaxError or *UnsupportedError
//	b, err := q.BindIn(params, setting) // *BindError or *UnsupportedError
//	if at, ok := b.Lookups(paths); ok { // WHERE names the documents: no scan
//	for each candidate document {
//		b.Each(doc, func() bool {        // each row of it that WHERE takes
//			row, ok := b.AppendRow(nil)  // ok is false: no row after all
//
// With ORDER BY, [Bound.SortKey] gives the key of a document and
// [Bound.Compare] orders two of them; a [SortKey] travels in a continuation as
// [SortKey.AppendJSON] and comes back with [Bound.ParseSortKey]. With GROUP BY or
// aggregates, [Bound.NewGroups] collects documents and makes the rows. With DISTINCT,
// rows with equal [DistinctKey] are one row. With FROM (SELECT ...), the rows of
// [Bound.Inner] are the documents; without FROM there is one row, of none. The
// caller owns paging and applies [Bound.Window] to the rows. [Bound.Info] makes the
// query plan. A continuation may be tied to [Query.Frame], not to the whole text: an
// SDK resumes a plan with another condition in place of [FilterPlaceholder].
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
// A path starts at a source of FROM (parser_scope.go finds which): at the document,
// whose paths are slots, or at a variable, through which a loop runs the elements of
// an array, a part of the document or the rows of a sub-query (block.go). All
// variables of a statement, those of its sub-queries too, have places of their own
// in one list, so a sub-query reads what is around it as it stands. SELECT of a query
// with GROUP BY is compiled against the values of the group: an expression that is
// one of GROUP BY, or a path inside of one, is its value (group.go).
//
// Each program knows the paths it touches. One walk over the raw bytes finds them
// all and stops at the last one. Values stay raw until something looks inside
// them, so numbers keep their spelling and SELECT * copies nothing.
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
// The first name of FROM is the container, whatever it is. In a sub-query it is a
// source of a query around, except in one that is itself the first source: that one
// runs over the container, before the query around it. parser_operator.go has the
// expressions.
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
// strings, arrays, objects.
//
// Undefined is no row (SELECT VALUE), no member, no element and no row of a
// sub-query; for DISTINCT and GROUP BY it is a value of its own, different from null.
// Aggregates leave it out: COUNT and SUM of nothing are 0, AVG, MIN and MAX of
// nothing undefined. SUM and AVG are undefined as soon as one value is no number,
// MIN and MAX as soon as one is an array or object; else those compare as ORDER BY
// does. A scalar sub-query of no row is undefined. FROM takes from a path only what
// is defined, and from IN only the elements of arrays. The grammar, reserved words and results follow the
// .NET SDK's own parser and offline engine (azure-cosmos-dotnet-v3,
// Query/Core/Parser/sql.g4 and tests/.../Query/OfflineEngine) and the published
// reference of the language.
//
// # Not supported
//
// Each of these is an [UnsupportedError] that names the construct:
//
//   - across partitions: an aggregate inside another expression, DISTINCT with
//     GROUP BY, ORDER BY of a sub-query in FROM, and a sub-query there whose rows
//     depend on all documents, except COUNT of SELECT DISTINCT
//   - ORDER BY with GROUP BY; ORDER BY of anything but a property path of the
//     document; ORDER BY RANK
//   - ORDER BY, TOP and OFFSET LIMIT in a sub-query that is not the first source
//   - ALL, FIRST and LAST of a sub-query
//   - user-defined functions
//   - functions on geometry (ST_...), VectorDistance, FullTextScore, RRF, RAND,
//     DocumentId, LastIndexOf, SubstringBefore/After, LastSubstringBefore/After; TRIM,
//     LTRIM and RTRIM with characters to cut
//   - REGEXMATCH with a pattern that is not constant, that Go's regexp package does
//     not have (look-ahead, back references), or with modifiers besides i, m and s
//   - a LIKE pattern with [ but no ]
//   - without parentheses, where two published readings differ: NOT before a
//     comparison, IN, LIKE or BETWEEN; || & | ^ beside a comparison; ?? beside ?:
//   - expressions deeper than 256 levels
//
// # Differences from the service
//
//   - A scalar sub-query that may have several rows is refused when it is parsed.
//   - The functions of the clock have one value for a request.
//   - DateTimeDiff in nanoseconds wraps around beyond some 292 years from 1970.
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
