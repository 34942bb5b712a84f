package query

import (
	"fmt"
	"maps"
)

// function is a scalar function of the language.
type function struct {
	name     string
	min, max int // arguments; max -1: any number
	known    int // with more arguments than this it is refused as unsupported; 0: no limit
	// lenient functions are called with undefined arguments too; any other is
	// undefined as soon as one argument is.
	lenient bool
	apply   func(args []Value) Value
}

func (f *function) arity() string {
	switch {
	case f.max < 0:
		return fmt.Sprintf("at least %d arguments", f.min)
	case f.max == 1 && f.min == 1:
		return "1 argument"
	case f.max == f.min:
		return fmt.Sprintf("%d arguments", f.min)
	default:
		return fmt.Sprintf("%d to %d arguments", f.min, f.max)
	}
}

// functions has them by their name in upper case.
var functions = func() map[string]*function {
	all := make(map[string]*function)
	for _, part := range []map[string]function{typeFunctions, mathFunctions, stringFunctions, convertFunctions, arrayFunctions, fullTextFunctions} {
		for name, f := range part {
			f.name = name
			all[name] = &f
		}
	}
	return all
}()

// aggregates are those the service has besides COUNT.
var aggregates = names("AVG", "COUNTIF", "MAKELIST", "MAKESET", "MAX", "MIN", "SUM")

// serviceFunctions are functions of the service that this engine does not have,
// besides those that start with ST_ and DATETIME. Naming them tells a missing
// feature from a spelling mistake.
var serviceFunctions = names(
	"ALL", "FIRST", "LAST",
	"CHOOSE", "CONTAINS_ALL_CI", "CONTAINS_ALL_CS", "CONTAINS_ANY_CI", "CONTAINS_ANY_CS", "DOCUMENTID",
	"FULLTEXTSCORE", "GETCURRENTDATETIME", "GETCURRENTDATETIMESTATIC", "GETCURRENTTICKS",
	"GETCURRENTTICKSSTATIC", "GETCURRENTTIMESTAMP", "GETCURRENTTIMESTAMPSTATIC",
	"INTADD", "INTBITAND", "INTBITLEFTSHIFT", "INTBITNOT", "INTBITOR", "INTBITRIGHTSHIFT", "INTBITXOR", "INTDIV",
	"INTMOD", "INTMUL", "INTSUB", "LASTINDEXOF", "LASTSUBSTRINGAFTER", "LASTSUBSTRINGBEFORE", "NUMBERBIN",
	"OBJECTTOARRAY", "RAND", "RRF", "SUBSTRINGAFTER", "SUBSTRINGBEFORE", "TICKSTODATETIME", "TIMESTAMPTODATETIME",
	"VECTORDISTANCE",
)

func names(list ...string) map[string]bool {
	return maps.Collect(func(yield func(string, bool) bool) {
		for _, n := range list {
			if !yield(n, true) {
				return
			}
		}
	})
}
