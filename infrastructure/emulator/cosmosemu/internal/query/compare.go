package query

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// equal implements = for two defined values. Values of different types differ, numbers are
// compared as 64-bit floats, arrays and objects as JSON (in objects, the order of members does
// not matter).
func equal(a, b Value) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case Boolean:
		return a.truth == b.truth
	case Number:
		return a.Float() == b.Float()
	case String:
		return bytes.Equal(a.text(), b.text())
	case Array, Object:
		if bytes.Equal(a.raw, b.raw) {
			return true
		}
		return bytes.Equal(appendCanonical(nil, a), appendCanonical(nil, b))
	default:
		return true
	}
}

// ordered implements < <= > >=. ok is false unless both values have the same simple type.
func ordered(a, b Value) (c int, ok bool) {
	if a.kind != b.kind || a.kind == Undefined || a.kind >= Array {
		return 0, false
	}
	return compare(a, b), true
}

// compare implements the order of ORDER BY: by type, then by value. Strings compare by their
// UTF-8 bytes, arrays item by item and then by length. Objects compare by their canonical
// form, which gives an arbitrary but stable order.
func compare(a, b Value) int {
	if a.kind != b.kind {
		return cmp.Compare(a.kind, b.kind)
	}
	switch a.kind {
	case Boolean:
		switch {
		case a.truth == b.truth:
			return 0
		case b.truth:
			return -1
		}
		return 1
	case Number:
		return cmp.Compare(a.Float(), b.Float())
	case String:
		return bytes.Compare(a.text(), b.text())
	case Array:
		return slices.CompareFunc(slices.Collect(items(a.raw)), slices.Collect(items(b.raw)), compare)
	case Object:
		return bytes.Compare(appendCanonical(nil, a), appendCanonical(nil, b))
	default:
		return 0
	}
}

// appendCanonical appends bytes that are the same for equal values and differ for others. No
// encoding is a prefix of another.
func appendCanonical(dst []byte, v Value) []byte {
	switch v.kind {
	case Null:
		return append(dst, 'n')
	case Boolean:
		if v.truth {
			return append(dst, 't')
		}
		return append(dst, 'f')
	case Number:
		f := v.Float()
		if f == 0 {
			f = 0 // -0 equals 0
		}
		return binary.BigEndian.AppendUint64(append(dst, 'd'), math.Float64bits(f))
	case String:
		return appendText(append(dst, 's'), v.text())
	case Array:
		dst = append(dst, '[')
		for x := range items(v.raw) {
			dst = appendCanonical(dst, x)
		}
		return append(dst, ']')
	case Object:
		return appendCanonicalObject(dst, v)
	default:
		return append(dst, 'u')
	}
}

func appendCanonicalObject(dst []byte, v Value) []byte {
	type member struct {
		key   []byte
		value Value
	}
	var list []member
	for key, x := range members(v.raw) {
		list = append(list, member{key, x})
	}
	// Of equal names the first is used, and a stable sort keeps it first.
	slices.SortStableFunc(list, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	list = slices.CompactFunc(list, func(a, b member) bool { return bytes.Equal(a.key, b.key) })
	dst = append(dst, '{')
	for _, m := range list {
		dst = appendCanonical(appendText(append(dst, ':'), m.key), m.value)
	}
	return append(dst, '}')
}

func appendText(dst, text []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// DistinctKey appends a key of the row that is equal for equal JSON values (member order,
// number spelling and string escapes do not matter).
func DistinctKey(dst, row []byte) []byte {
	return appendCanonical(dst, jsonValue(trim(row)))
}
