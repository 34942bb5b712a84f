package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
)

// canonicalArrayType returns the constructor for the elements of a: the widest of their type,
// so that the encoding of an array does not depend on its values.
func canonicalArrayType(a Array) byte {
	switch a.Type {
	case codeTrue, codeFalse:
		return codeBool
	case codeUint0, codeSmallUint:
		return codeUint
	case codeUlong0, codeSmallUlong:
		return codeUlong
	case codeSmallInt:
		return codeInt
	case codeSmallLong:
		return codeLong
	case codeVbin8, codeVbin32:
		return variableType(a.Elems, codeVbin8, codeVbin32)
	case codeStr8, codeStr32:
		return variableType(a.Elems, codeStr8, codeStr32)
	case codeSym8, codeSym32:
		return variableType(a.Elems, codeSym8, codeSym32)
	case codeList0, codeList8:
		return codeList32
	case codeMap8:
		return codeMap32
	case codeArray8:
		return codeArray32
	default:
		return a.Type
	}
}

// variableType returns the 8-bit form if every element fits it.
func variableType(elems []any, code8, code32 byte) byte {
	for _, e := range elems {
		n := 0
		switch t := e.(type) {
		case []byte:
			n = len(t)
		case string:
			n = len(t)
		case Symbol:
			n = len(t)
		}
		if n > math.MaxUint8 {
			return code32
		}
	}
	return code8
}

func appendArray(b []byte, a Array) []byte {
	code := canonicalArrayType(a)
	b, mark := beginCompound(b)
	if a.Descriptor != nil {
		b = AppendValue(append(b, codeDescribed), a.Descriptor)
	}
	b = append(b, code)
	for _, e := range a.Elems {
		b = appendElement(b, code, e)
	}
	return endCompound(b, mark, codeArray8, codeArray32, len(a.Elems))
}

// appendElement appends an array element without its constructor. An element
// of another type than the array's is a programming error and panics.
func appendElement(b []byte, code byte, v any) []byte {
	switch code {
	case codeNull:
		return b
	case codeBool:
		if v.(bool) {
			return append(b, 1)
		}
		return append(b, 0)
	case codeUint:
		return binary.BigEndian.AppendUint32(b, v.(uint32))
	case codeUlong:
		return binary.BigEndian.AppendUint64(b, v.(uint64))
	case codeInt:
		return binary.BigEndian.AppendUint32(b, uint32(v.(int32)))
	case codeLong:
		return binary.BigEndian.AppendUint64(b, uint64(v.(int64)))
	case codeVbin8:
		return append(append(b, byte(len(v.([]byte)))), v.([]byte)...)
	case codeVbin32:
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v.([]byte)))), v.([]byte)...)
	case codeStr8:
		return append(append(b, byte(len(v.(string)))), v.(string)...)
	case codeStr32:
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v.(string)))), v.(string)...)
	case codeSym8:
		return append(append(b, byte(len(v.(Symbol)))), v.(Symbol)...)
	case codeSym32:
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v.(Symbol)))), v.(Symbol)...)
	case codeList32, codeMap32, codeArray32:
		return appendCompoundElement(b, code, v)
	default: // one fixed-width form: its encoding minus the constructor
		mark := len(b)
		b = AppendValue(b, v)
		if b[mark] != code {
			panic(fmt.Sprintf("amqp: %T in an array of constructor 0x%02x", v, code))
		}
		copy(b[mark:], b[mark+1:])
		return b[:len(b)-1]
	}
}

// appendCompoundElement appends size, count and elements of a compound, always
// in the 32-bit form and without the constructor byte.
func appendCompoundElement(b []byte, code byte, v any) []byte {
	mark := len(b)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	var count int
	switch t := v.(type) {
	case List:
		if code != codeList32 {
			panic("amqp: list in an array of another type")
		}
		count = len(t)
		for _, e := range t {
			b = AppendValue(b, e)
		}
	case Map:
		if code != codeMap32 {
			panic("amqp: map in an array of another type")
		}
		count = 2 * len(t)
		for _, e := range t {
			b = AppendValue(AppendValue(b, e.Key), e.Value)
		}
	case Array:
		if code != codeArray32 {
			panic("amqp: array in an array of another type")
		}
		count = len(t.Elems)
		inner := canonicalArrayType(t)
		if t.Descriptor != nil {
			b = AppendValue(append(b, codeDescribed), t.Descriptor)
		}
		b = append(b, inner)
		for _, e := range t.Elems {
			b = appendElement(b, inner, e)
		}
	default:
		panic(fmt.Sprintf("amqp: %T in an array of constructor 0x%02x", v, code))
	}
	binary.BigEndian.PutUint32(b[mark:], uint32(len(b)-mark-4))
	binary.BigEndian.PutUint32(b[mark+4:], uint32(count))
	return b
}
