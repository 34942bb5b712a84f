package query

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
)

// convertFunctions convert between text and values.
var convertFunctions = map[string]function{
	"DOCUMENTID":      {min: 1, max: 1, apply: documentID},
	"STRINGTOARRAY":   parseAs(Array),
	"STRINGTOBOOLEAN": parseAs(Boolean),
	"STRINGTONULL":    parseAs(Null),
	"STRINGTONUMBER":  parseAs(Number),
	"STRINGTOOBJECT":  parseAs(Object),
	"TOSTRING": {min: 1, max: 1, lenient: true, apply: func(a []Value) Value {
		switch a[0].kind {
		case Undefined:
			if a[0].raw == nil {
				return Value{}
			}
			return decodedValue(a[0].raw)
		case String:
			return a[0]
		default:
			return decodedValue(appendCompact(nil, a[0]))
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
		if a[0].kind != String || a[1].kind != String {
			return Value{}
		}
		var l listBuilder
		if len(a[1].raw) == 0 { // it separates nothing
			l.add(a[0])
			return l.value()
		}
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

// documentID returns the number of a document within its container: the last 60 bits of its
// resource id.
func documentID(a []Value) Value {
	rid := a[0].find(step{name: "_rid", index: -1})
	raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(rid.Text(), "-", "/"))
	if err != nil || len(raw) != 16 {
		return Value{}
	}
	return floatValue(float64(binary.LittleEndian.Uint64(raw[8:]) & (1<<60 - 1)))
}

// typeFunctions test the type of a value. They are true or false, never undefined.
var typeFunctions = map[string]function{
	"IS_ARRAY":   is(func(v Value) bool { return v.kind == Array }),
	"IS_BOOL":    is(func(v Value) bool { return v.kind == Boolean }),
	"IS_DEFINED": is(func(v Value) bool { return v.kind != Undefined }),
	"IS_FINITE_NUMBER": is(func(v Value) bool {
		return v.kind == Number && v.Float()-v.Float() == 0
	}),
	"IS_INTEGER": is(func(v Value) bool {
		f := v.Float()
		return v.kind == Number && f == math.Trunc(f) && math.Abs(f) <= 1<<63
	}),
	"IS_NULL":   is(func(v Value) bool { return v.kind == Null }),
	"IS_NUMBER": is(func(v Value) bool { return v.kind == Number }),
	"IS_OBJECT": is(func(v Value) bool { return v.kind == Object }),
	"IS_PRIMITIVE": is(func(v Value) bool {
		return v.kind != Undefined && v.kind < Array
	}),
	"IS_STRING": is(func(v Value) bool { return v.kind == String }),
	"IIF": {min: 3, max: 3, lenient: true, apply: func(a []Value) Value {
		if a[0].kind == Boolean && a[0].truth {
			return a[1]
		}
		return a[2]
	}},
}

func is(test func(Value) bool) function {
	return function{min: 1, max: 1, lenient: true, apply: func(a []Value) Value { return boolValue(test(a[0])) }}
}

// appendCompact writes a value without blanks, and numbers as if they were computed, because the service
// does not keep their spelling.
func appendCompact(dst []byte, v Value) []byte {
	switch v.kind {
	case Number:
		return appendNumber(dst, v.Float())
	case Array:
		dst = append(dst, '[')
		for x := range items(v.raw) {
			dst = append(appendCompact(dst, x), ',')
		}
		return closed(dst, ']')
	case Object:
		dst = append(dst, '{')
		for key, x := range members(v.raw) {
			dst = append(appendCompact(append(appendString(dst, key), ':'), x), ',')
		}
		return closed(dst, '}')
	default:
		return v.AppendJSON(dst)
	}
}

// closed replaces the last comma, if there is one, by a closing bracket.
func closed(dst []byte, end byte) []byte {
	if last := len(dst) - 1; dst[last] == ',' {
		dst = dst[:last]
	}
	return append(dst, end)
}
