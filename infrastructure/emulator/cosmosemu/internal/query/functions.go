package query

import (
	"fmt"
	"maps"
	"time"
)

// function is a scalar function of the language.
type function struct {
	name     string
	min, max int // arguments; max -1: any number
	// lenient functions are also called with undefined arguments. Any other function is
	// undefined if one of its arguments is.
	lenient bool
	apply   func(args []Value) Value
	now     func(time.Time) Value // of a function of the clock, instead of apply
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

// functions contains all functions by their name in upper case.
var functions = func() map[string]*function {
	all := make(map[string]*function)
	for _, part := range []map[string]function{typeFunctions, mathFunctions, stringFunctions, convertFunctions, arrayFunctions, fullTextFunctions, dateFunctions, integerFunctions} {
		for name, f := range part {
			f.name = name
			all[name] = &f
		}
	}
	return all
}()

// serviceFunctions are functions of the service that this engine does not support, in
// addition to those that start with ST_. They are listed to distinguish a missing feature
// from a spelling mistake.
var serviceFunctions = names(
	"ALL", "FIRST", "LAST", "FULLTEXTSCORE", "LASTINDEXOF", "LASTSUBSTRINGAFTER", "LASTSUBSTRINGBEFORE",
	"RRF", "SUBSTRINGAFTER", "SUBSTRINGBEFORE", "VECTORDISTANCE",
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
