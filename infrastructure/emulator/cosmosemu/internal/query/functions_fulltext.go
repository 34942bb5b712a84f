package query

import (
	"slices"
	"strings"
	"unicode"
)

// fullTextFunctions search for words. A word is a run of letters and digits, case is ignored,
// and a phrase is a sequence of words. The service also reduces words to their stems and
// ignores the most common ones; this engine does not.
var fullTextFunctions = map[string]function{
	"FULLTEXTCONTAINS": fullText(2, func(text []string, phrases [][]string) bool {
		return hasPhrase(text, phrases[0])
	}),
	"FULLTEXTCONTAINSALL": fullText(-1, func(text []string, phrases [][]string) bool {
		return !slices.ContainsFunc(phrases, func(p []string) bool { return !hasPhrase(text, p) })
	}),
	"FULLTEXTCONTAINSANY": fullText(-1, func(text []string, phrases [][]string) bool {
		return slices.ContainsFunc(phrases, func(p []string) bool { return hasPhrase(text, p) })
	}),
}

func fullText(most int, f func(text []string, phrases [][]string) bool) function {
	return function{min: 2, max: most, apply: func(a []Value) Value {
		all := make([][]string, len(a))
		for i, v := range a {
			if v.kind != String {
				return Value{}
			}
			all[i] = words(v.Text())
		}
		return boolValue(f(all[0], all[1:]))
	}}
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}

// hasPhrase reports whether text contains the words of phrase in sequence. It is false for a
// phrase without words.
func hasPhrase(text, phrase []string) bool {
	if len(phrase) == 0 {
		return false
	}
	for i := range len(text) - len(phrase) + 1 {
		if slices.Equal(text[i:i+len(phrase)], phrase) {
			return true
		}
	}
	return false
}
