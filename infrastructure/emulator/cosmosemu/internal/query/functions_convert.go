package query

import (
	"bytes"
	"encoding/json"
	"strings"
)

// convertFunctions convert between text and values.
var convertFunctions = map[string]function{
	"STRINGTOARRAY":   parseAs(Array),
	"STRINGTOBOOLEAN": parseAs(Boolean),
	"STRINGTONULL":    parseAs(Null),
	"STRINGTONUMBER":  parseAs(Number),
	"STRINGTOOBJECT":  parseAs(Object),
	"TOSTRING": {min: 1, max: 1, apply: func(a []Value) Value {
		switch a[0].kind {
		case String:
			return a[0]
		case Array, Object:
			var b bytes.Buffer
			if json.Compact(&b, a[0].raw) != nil {
				return Value{}
			}
			return decodedValue(b.Bytes())
		default:
			return decodedValue(a[0].AppendJSON(nil))
		}
	}},
	"STRINGJOIN": {min: 2, max: 2, apply: func(a []Value) Value {
		if a[0].kind != Array || a[1].kind != String {
			return Value{}
		}
		var parts []Value
		for x := range items(a[0].raw) {
			if len(parts) > 0 {
				parts = append(parts, a[1])
			}
			parts = append(parts, x)
		}
		return concat(parts)
	}},
	"STRINGSPLIT": {min: 2, max: 2, apply: func(a []Value) Value {
		if a[0].kind != String || a[1].kind != String || len(a[1].raw) == 0 {
			return Value{}
		}
		var l listBuilder
		for _, part := range strings.Split(a[0].Text(), a[1].Text()) {
			l.add(textValue(part))
		}
		return l.value()
	}},
}

// parseAs parses a string as JSON of one type. Blanks around it are allowed.
func parseAs(kind Kind) function {
	return function{min: 1, max: 1, apply: func(a []Value) Value {
		if a[0].kind != String {
			return Value{}
		}
		text := a[0].text()
		if !json.Valid(text) {
			return Value{}
		}
		if v := jsonValue(trim(text)); v.kind == kind {
			return v
		}
		return Value{}
	}}
}
