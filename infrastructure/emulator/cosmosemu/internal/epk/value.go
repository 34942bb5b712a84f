package epk

import (
	"encoding/binary"
	"math"
	"strconv"
)

// Type markers of the hash encoding, with the values of the protocol.
const (
	markUndefined byte = 0x00
	markNull      byte = 0x01
	markFalse     byte = 0x02
	markTrue      byte = 0x03
	markNumber    byte = 0x05
	markString    byte = 0x08
	endOfString   byte = 0xFF // never part of UTF-8, so the encoding is unambiguous
)

// Value is one level of a partition key: undefined (the property is absent),
// null, a boolean, a number or a string. The zero value is undefined.
type Value struct {
	mark byte
	num  float64
	str  string
}

// Undefined is the value of an absent property.
func Undefined() Value { return Value{} }

// Null is the JSON null.
func Null() Value { return Value{mark: markNull} }

// Bool is a JSON boolean.
func Bool(b bool) Value {
	if b {
		return Value{mark: markTrue}
	}
	return Value{mark: markFalse}
}

// Number is a JSON number.
func Number(f float64) Value { return Value{mark: markNumber, num: f} }

// String is a JSON string, already decoded.
func String(s string) Value { return Value{mark: markString, str: s} }

// Text returns the string and true if v is a string.
func (v Value) Text() (string, bool) { return v.str, v.mark == markString }

func (v Value) append(dst []byte) []byte { return v.appendEndingWith(dst, endOfString) }

func (v Value) appendEndingWith(dst []byte, end byte) []byte {
	dst = append(dst, v.mark)
	switch v.mark {
	case markNumber:
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.num))
	case markString:
		dst = append(append(dst, v.str...), end)
	}
	return dst
}

// String returns the value as JSON text, for messages.
func (v Value) String() string {
	switch v.mark {
	case markNull:
		return "null"
	case markFalse:
		return "false"
	case markTrue:
		return "true"
	case markNumber:
		return strconv.FormatFloat(v.num, 'g', -1, 64)
	case markString:
		return strconv.Quote(v.str)
	}
	return "{}"
}

// Key is a partition key: one value, or one per level of a hierarchical key.
type Key []Value

// Encode appends the key's canonical binary form. Two keys with the same number of levels have
// the same form exactly if they are equal.
func (k Key) Encode(dst []byte) []byte {
	for _, v := range k {
		dst = v.append(dst)
	}
	return dst
}

// String returns the key as the JSON array in the partition key header.
func (k Key) String() string {
	out := "["
	for i, v := range k {
		if i > 0 {
			out += ","
		}
		out += v.String()
	}
	return out + "]"
}
