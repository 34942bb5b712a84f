package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
)

// AppendNull appends a null.
func AppendNull(b []byte) []byte { return append(b, codeNull) }

// AppendBool appends a boolean in its one-byte form.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, codeTrue)
	}
	return append(b, codeFalse)
}

// AppendUint8 appends a ubyte.
func AppendUint8(b []byte, v uint8) []byte { return append(b, codeUbyte, v) }

// AppendUint16 appends a ushort.
func AppendUint16(b []byte, v uint16) []byte {
	return append(b, codeUshort, byte(v>>8), byte(v))
}

// AppendUint32 appends a uint in its shortest form.
func AppendUint32(b []byte, v uint32) []byte {
	switch {
	case v == 0:
		return append(b, codeUint0)
	case v < 256:
		return append(b, codeSmallUint, byte(v))
	default:
		return binary.BigEndian.AppendUint32(append(b, codeUint), v)
	}
}

// AppendUint64 appends a ulong in its shortest form.
func AppendUint64(b []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(b, codeUlong0)
	case v < 256:
		return append(b, codeSmallUlong, byte(v))
	default:
		return binary.BigEndian.AppendUint64(append(b, codeUlong), v)
	}
}

// AppendInt32 appends an int in its shortest form.
func AppendInt32(b []byte, v int32) []byte {
	if v >= math.MinInt8 && v <= math.MaxInt8 {
		return append(b, codeSmallInt, byte(v))
	}
	return binary.BigEndian.AppendUint32(append(b, codeInt), uint32(v))
}

// AppendInt64 appends a long in its shortest form.
func AppendInt64(b []byte, v int64) []byte {
	if v >= math.MinInt8 && v <= math.MaxInt8 {
		return append(b, codeSmallLong, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, codeLong), uint64(v))
}

// AppendTimestamp appends a timestamp.
func AppendTimestamp(b []byte, v Timestamp) []byte {
	return binary.BigEndian.AppendUint64(append(b, codeTimestamp), uint64(v))
}

// AppendUUID appends a uuid.
func AppendUUID(b []byte, v UUID) []byte { return append(append(b, codeUUID), v[:]...) }

// AppendBinary appends a binary; nil and empty are both an empty binary.
func AppendBinary(b, v []byte) []byte {
	return append(appendVariableHeader(b, codeVbin8, codeVbin32, len(v)), v...)
}

// AppendString appends a string.
func AppendString(b []byte, v string) []byte {
	return append(appendVariableHeader(b, codeStr8, codeStr32, len(v)), v...)
}

// AppendSymbol appends a symbol.
func AppendSymbol(b []byte, v Symbol) []byte {
	return append(appendVariableHeader(b, codeSym8, codeSym32, len(v)), v...)
}

// AppendDescriptor appends the start of a described value. Code is always
// written as smallulong, the only form go-amqp reads.
func AppendDescriptor(b []byte, code byte) []byte {
	return append(b, codeDescribed, codeSmallUlong, code)
}

func appendVariableHeader(b []byte, code8, code32 byte, n int) []byte {
	if n < 256 {
		return append(b, code8, byte(n))
	}
	return binary.BigEndian.AppendUint32(append(b, code32), uint32(n))
}

// AppendValue appends any value of the types listed at [Symbol]. A Go type that
// is not the image of an AMQP type is a programming error and panics.
func AppendValue(b []byte, v any) []byte {
	switch t := v.(type) {
	case nil:
		return AppendNull(b)
	case bool:
		return AppendBool(b, t)
	case uint8:
		return AppendUint8(b, t)
	case uint16:
		return AppendUint16(b, t)
	case uint32:
		return AppendUint32(b, t)
	case uint64:
		return AppendUint64(b, t)
	case int8:
		return append(b, codeByte, byte(t))
	case int16:
		return append(b, codeShort, byte(uint16(t)>>8), byte(t))
	case int32:
		return AppendInt32(b, t)
	case int64:
		return AppendInt64(b, t)
	case float32:
		return binary.BigEndian.AppendUint32(append(b, codeFloat), math.Float32bits(t))
	case float64:
		return binary.BigEndian.AppendUint64(append(b, codeDouble), math.Float64bits(t))
	case Char:
		return binary.BigEndian.AppendUint32(append(b, codeChar), uint32(t))
	case Timestamp:
		return AppendTimestamp(b, t)
	case UUID:
		return AppendUUID(b, t)
	case Decimal32:
		return append(append(b, codeDecimal32), t[:]...)
	case Decimal64:
		return append(append(b, codeDecimal64), t[:]...)
	case Decimal128:
		return append(append(b, codeDecimal128), t[:]...)
	case []byte:
		return AppendBinary(b, t)
	case string:
		return AppendString(b, t)
	case Symbol:
		return AppendSymbol(b, t)
	case Described:
		return AppendValue(AppendValue(append(b, codeDescribed), t.Descriptor), t.Value)
	case List:
		return appendList(b, t)
	case Map:
		return appendMap(b, t)
	case Array:
		return appendArray(b, t)
	default:
		panic(fmt.Sprintf("amqp: %T is not an AMQP value", v))
	}
}

func appendList(b []byte, l List) []byte {
	if len(l) == 0 {
		return append(b, codeList0)
	}
	b, mark := beginCompound(b)
	for _, v := range l {
		b = AppendValue(b, v)
	}
	return endCompound(b, mark, codeList8, codeList32, len(l))
}

func appendMap(b []byte, m Map) []byte {
	b, mark := beginCompound(b)
	for _, e := range m {
		b = AppendValue(AppendValue(b, e.Key), e.Value)
	}
	return endCompound(b, mark, codeMap8, codeMap32, 2*len(m))
}

// compoundHeader is the room kept for a constructor, a 32-bit size and a 32-bit
// count while the elements are written.
const compoundHeader = 9

func beginCompound(b []byte) (buf []byte, mark int) {
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0), len(b)
}

// endCompound fills in the header begun at mark, in the 8-bit form when size
// and count allow it, which moves the elements down.
func endCompound(b []byte, mark int, code8, code32 byte, count int) []byte {
	body := len(b) - mark - compoundHeader
	if body+1 < 256 && count < 256 {
		b[mark], b[mark+1], b[mark+2] = code8, byte(body+1), byte(count)
		copy(b[mark+3:], b[mark+compoundHeader:])
		return b[:mark+3+body]
	}
	b[mark] = code32
	binary.BigEndian.PutUint32(b[mark+1:], uint32(body+4))
	binary.BigEndian.PutUint32(b[mark+5:], uint32(count))
	return b
}
