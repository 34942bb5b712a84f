package query

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxReplicate is the longest result of REPLICATE. A longer one is undefined.
const maxReplicate = 10_000

// stringFunctions work on strings. Positions and lengths count characters (Unicode code
// points). Another argument makes the result undefined.
var stringFunctions = map[string]function{
	"CONCAT":          {min: 2, max: -1, apply: concat},
	"CONTAINS":        search(bytes.Contains),
	"ENDSWITH":        search(bytes.HasSuffix),
	"STARTSWITH":      search(bytes.HasPrefix),
	"STRINGEQUALS":    search(bytes.Equal),
	"CONTAINS_ALL_CI": searchMany(true, true),
	"CONTAINS_ALL_CS": searchMany(true, false),
	"CONTAINS_ANY_CI": searchMany(false, true),
	"CONTAINS_ANY_CS": searchMany(false, false),
	"INDEX_OF":        {min: 2, max: 3, apply: indexOf},
	"LEFT": {min: 2, max: 2, apply: func(a []Value) Value {
		return substring(a[0], floatValue(0), a[1])
	}},
	"RIGHT": {min: 2, max: 2, apply: func(a []Value) Value {
		n, ok := a[1].integer()
		if a[0].kind != String || !ok {
			return Value{}
		}
		length := int64(utf8.RuneCount(a[0].text()))
		return substring(a[0], floatValue(float64(length-min(n, length))), floatValue(float64(length)))
	}},
	"SUBSTRING": {min: 3, max: 3, apply: func(a []Value) Value {
		return substring(a[0], a[1], a[2])
	}},
	"LENGTH": {min: 1, max: 1, apply: func(a []Value) Value {
		if a[0].kind != String {
			return Value{}
		}
		return floatValue(float64(utf8.RuneCount(a[0].text())))
	}},
	"LOWER": text1(bytes.ToLower),
	"UPPER": text1(bytes.ToUpper),
	"LTRIM": trimmer(bytes.TrimLeftFunc),
	"RTRIM": trimmer(bytes.TrimRightFunc),
	"TRIM":  trimmer(bytes.TrimFunc),
	"REPLACE": {min: 3, max: 3, apply: func(a []Value) Value {
		if a[0].kind != String || a[1].kind != String || a[2].kind != String || len(a[1].raw) == 0 {
			return Value{}
		}
		text, old, replacement := a[0].text(), a[1].text(), a[2].text()
		if len(text)+bytes.Count(text, old)*len(replacement) > maxValue {
			return Value{}
		}
		return decodedValue(bytes.ReplaceAll(text, old, replacement))
	}},
	"REPLICATE": {min: 2, max: 2, apply: func(a []Value) Value {
		if a[0].kind != String || a[1].kind != Number {
			return Value{}
		}
		text, n := a[0].text(), math.Trunc(a[1].Float())
		if n < 0 || n*float64(utf8.RuneCount(text)) > maxReplicate {
			return Value{}
		}
		if len(text) == 0 {
			return decodedValue(nil)
		}
		return decodedValue(bytes.Repeat(text, int(n)))
	}},
	"REVERSE": text1(func(s []byte) []byte {
		runes := []rune(string(s))
		slices.Reverse(runes)
		return []byte(string(runes))
	}),
	// REGEXMATCH has no apply, because compiler.regex compiles its pattern.
	"REGEXMATCH": {min: 2, max: 3},
}

func decodedValue(text []byte) Value { return Value{kind: String, form: decoded, raw: text} }

// concat joins strings.
func concat(list []Value) Value {
	var b []byte
	for _, v := range list {
		if v.kind != String || len(b)+len(v.raw) > maxValue {
			return Value{}
		}
		b = append(b, v.text()...)
	}
	return decodedValue(b)
}

func text1(f func([]byte) []byte) function {
	return function{min: 1, max: 1, apply: func(a []Value) Value {
		if a[0].kind != String {
			return Value{}
		}
		return decodedValue(f(a[0].text()))
	}}
}

// trimmer removes blanks, or the characters of the second argument.
func trimmer(f func([]byte, func(rune) bool) []byte) function {
	return function{min: 1, max: 2, apply: func(a []Value) Value {
		cut := unicode.IsSpace
		if len(a) == 2 {
			if a[1].kind != String {
				return Value{}
			}
			set := a[1].Text()
			cut = func(r rune) bool { return strings.ContainsRune(set, r) }
		}
		if a[0].kind != String {
			return Value{}
		}
		return decodedValue(f(a[0].text(), cut))
	}}
}

// search compares two strings; a third argument of true ignores case.
func search(f func(text, part []byte) bool) function {
	return function{min: 2, max: 3, apply: func(a []Value) Value {
		if a[0].kind != String || a[1].kind != String {
			return Value{}
		}
		text, part := a[0].text(), a[1].text()
		if len(a) == 3 {
			if a[2].kind != Boolean {
				return Value{}
			}
			if a[2].truth {
				text, part = bytes.ToLower(text), bytes.ToLower(part)
			}
		}
		return boolValue(f(text, part))
	}}
}

// quantified tests the arguments after the first one, and joins the results as AND does, or as OR. A test
// may have no result.
func quantified(all bool, test func(in, x Value) (result, known bool)) function {
	return function{min: 2, max: -1, lenient: true, apply: func(a []Value) Value {
		unknown := false
		for _, x := range a[1:] {
			result, known := test(a[0], x)
			if known && result != all {
				return boolValue(!all)
			}
			unknown = unknown || !known
		}
		if unknown {
			return Value{}
		}
		return boolValue(all)
	}}
}

// searchMany searches the first argument for all, or for any, of the others.
func searchMany(all, ignoreCase bool) function {
	return quantified(all, func(in, x Value) (found, known bool) {
		if in.kind != String || x.kind != String {
			return false, false
		}
		text, part := in.text(), x.text()
		if ignoreCase {
			text, part = bytes.ToLower(text), bytes.ToLower(part)
		}
		return bytes.Contains(text, part), true
	})
}

// indexOf returns the first position of the second string in the first, at or after the
// optional third argument; -1 if there is none.
func indexOf(a []Value) Value {
	if a[0].kind != String || a[1].kind != String {
		return Value{}
	}
	text, start := a[0].Text(), int64(0)
	if len(a) == 3 {
		n, ok := a[2].integer()
		if !ok || n < 0 {
			return Value{}
		}
		start = n
	}
	from := offset(text, start)
	at := strings.Index(text[from:], a[1].Text())
	if at < 0 || start > int64(utf8.RuneCountInString(text)) {
		return floatValue(-1)
	}
	return floatValue(float64(start) + float64(utf8.RuneCountInString(text[from:from+at])))
}

// substring returns up to length characters from start on.
func substring(text, start, length Value) Value {
	from, ok1 := start.integer()
	n, ok2 := length.integer()
	if text.kind != String || !ok1 || !ok2 {
		return Value{}
	}
	if from < 0 || n <= 0 {
		return decodedValue(nil)
	}
	s := text.Text()
	s = s[offset(s, from):]
	return textValue(s[:offset(s, n)])
}

// offset returns the byte offset of the nth character of s, len(s) if there is none.
func offset(s string, n int64) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
