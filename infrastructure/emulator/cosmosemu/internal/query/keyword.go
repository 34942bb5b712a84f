package query

import "strings"

// keywords are the reserved words, which cannot name a property after a dot, an alias or a
// source. The set is from the grammar of the .NET SDK (Query/Core/Parser/sql.g4), without
// RANK, FIRST, LAST and ALL. These are also names there or were added to the language late,
// so the parser checks for them only where they are relevant.
var keywords = map[string]bool{
	"AND": true, "ARRAY": true, "AS": true, "ASC": true, "BETWEEN": true, "BY": true, "DESC": true,
	"DISTINCT": true, "ESCAPE": true, "EXISTS": true, "FROM": true, "GROUP": true, "IN": true, "JOIN": true,
	"LEFT": true, "LIKE": true, "LIMIT": true, "NOT": true, "OFFSET": true, "OR": true, "ORDER": true,
	"RIGHT": true, "SELECT": true, "TOP": true, "VALUE": true, "WHERE": true,
}

// keyword returns w in upper case if it is a keyword, otherwise "". The constants and udf are
// keywords in lower case only, all others in any case.
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
