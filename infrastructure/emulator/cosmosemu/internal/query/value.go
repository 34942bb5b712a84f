package query

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is the type of a value, in the order in which ORDER BY sorts types.
type Kind uint8

// The kinds, from the smallest to the largest in sort order.
const (
	Undefined Kind = iota
	Null
	Boolean
	Number
	String
	Array
	Object
)

// form is the encoding of the bytes of a string Value.
type form uint8

const (
	plain   form = iota // JSON without quotes and without any escape: also the text
	escaped             // JSON without quotes, with escapes
	decoded             // the text itself, which may need escapes in JSON
)

// Value is one JSON value, or undefined (the zero Value). It may refer to bytes of its document
// or parameter.
type Value struct {
	kind   Kind
	form   form // of a String
	truth  bool // of a Boolean
	parsed bool // num is set
	num    float64
	raw    []byte // the JSON text of an Array, Object or Number; a String by its form; nil for a computed Number
}

// Kind returns the type of the value.
func (v Value) Kind() Kind { return v.kind }

// Bool returns the value of a Boolean; false for any other kind.
func (v Value) Bool() bool { return v.truth }

// Float returns the value of a Number; 0 for any other kind.
func (v Value) Float() float64 {
	if v.parsed || v.kind != Number {
		return v.num
	}
	return parseNumber(v.raw)
}

// Text returns the characters of a String, unescaped; "" for any other kind.
func (v Value) Text() string {
	if v.kind != String {
		return ""
	}
	return string(v.text())
}

// text returns the characters of a String, without a copy if there are no escapes.
func (v Value) text() []byte {
	if v.form == escaped {
		return unescape(v.raw)
	}
	return v.raw
}

// AppendJSON appends the value as JSON text. Numbers keep their spelling. It appends nothing
// for undefined.
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.kind {
	case Null:
		return append(dst, "null"...)
	case Boolean:
		if v.truth {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case Number:
		if v.raw == nil {
			return appendNumber(dst, v.num)
		}
		return append(dst, v.raw...)
	case String:
		if v.form == decoded {
			return appendString(dst, v.raw)
		}
		dst = append(dst, '"')
		dst = append(dst, v.raw...)
		return append(dst, '"')
	case Array, Object:
		return append(dst, v.raw...)
	default:
		return dst
	}
}

// clone copies the bytes that the value refers to.
func (v Value) clone() Value {
	v.raw = bytes.Clone(v.raw)
	return v
}

var infinity, minusInfinity, notANumber = []byte("Infinity"), []byte("-Infinity"), []byte("NaN")

func boolValue(b bool) Value { return Value{kind: Boolean, truth: b} }

// floatValue returns a Number. JSON cannot represent infinities and NaN, so they are undefined
// and keep their name for TOSTRING.
func floatValue(f float64) Value {
	switch {
	case f-f == 0:
	case f > 0:
		return Value{raw: infinity}
	case f < 0:
		return Value{raw: minusInfinity}
	default:
		return Value{raw: notANumber}
	}
	return Value{kind: Number, parsed: true, num: f}
}

// numberValue returns a Number that keeps its spelling.
func numberValue(text string) Value {
	raw := []byte(text)
	return Value{kind: Number, parsed: true, num: parseNumber(raw), raw: raw}
}

func textValue[T string | []byte](text T) Value {
	return Value{kind: String, form: decoded, raw: []byte(text)}
}

// jsonValue returns the value of a JSON text without blanks around it.
func jsonValue(raw []byte) Value {
	if len(raw) == 0 {
		return Value{}
	}
	switch c := raw[0]; c {
	case '"':
		if len(raw) < 2 {
			return Value{}
		}
		content := raw[1 : len(raw)-1]
		if bytes.IndexByte(content, '\\') >= 0 {
			return Value{kind: String, form: escaped, raw: content}
		}
		return Value{kind: String, form: plain, raw: content}
	case '{':
		return Value{kind: Object, raw: raw}
	case '[':
		return Value{kind: Array, raw: raw}
	case 't', 'f':
		return boolValue(c == 't')
	case 'n':
		return Value{kind: Null}
	default:
		return Value{kind: Number, raw: raw}
	}
}

// unescape decodes the escapes of JSON string content. Half a surrogate pair
// becomes U+FFFD, as does an unknown escape.
func unescape(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			i++
			continue
		}
		c := s[i+1]
		i += 2
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := hex4(s[i:])
			if !ok {
				out = utf8.AppendRune(out, utf8.RuneError)
				continue
			}
			i += 4
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if bytes.HasPrefix(s[i:], []byte(`\u`)) {
					if low, ok := hex4(s[i+2:]); ok {
						pair = utf16.DecodeRune(r, low)
					}
				}
				if pair != utf8.RuneError {
					i += 6
				}
				r = pair
			}
			out = utf8.AppendRune(out, r)
		default:
			out = utf8.AppendRune(out, utf8.RuneError)
		}
	}
	return out
}
