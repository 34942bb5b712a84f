package query

import "strings"

// keywords are the reserved words: none of them names a property after a dot, an
// alias or a source. The set is the one of the grammar that ships with the .NET
// SDK (Query/Core/Parser/sql.g4), less RANK, FIRST, LAST and ALL, which are also
// names there or became words of the language late; the parser looks at those
// where they matter.
var keywords = map[string]bool{
	"AND": true, "ARRAY": true, "AS": true, "ASC": true, "BETWEEN": true, "BY": true, "DESC": true,
	"DISTINCT": true, "ESCAPE": true, "EXISTS": true, "FROM": true, "GROUP": true, "IN": true, "JOIN": true,
	"LEFT": true, "LIKE": true, "LIMIT": true, "NOT": true, "OFFSET": true, "OR": true, "ORDER": true,
	"RIGHT": true, "SELECT": true, "TOP": true, "VALUE": true, "WHERE": true,
}

// keyword returns the keyword that w is, in upper case, or "". The constants and
// udf are keywords in lower case only, all others in any case.
func keyword(w string) string {
	switch w {
	case "true", "false", "null", "undefined", "udf":
		return w
	}
	if len(w) > len("DISTINCT") || len(w) < 2 {
		return ""
	}
	if upper := strings.ToUpper(w); keywords[upper] {
		return upper
	}
	return ""
}
