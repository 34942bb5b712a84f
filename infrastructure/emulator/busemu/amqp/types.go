package amqp

import (
	"encoding/hex"
	"fmt"
	"math"
	"time"
)

// A decoded AMQP value is one of these Go types, each the image of exactly one
// AMQP type (part 1, section 1.6):
//
//	null nil · boolean bool · ubyte uint8 · ushort uint16 · uint uint32 ·
//	ulong uint64 · byte int8 · short int16 · int int32 · long int64 ·
//	float float32 · double float64 · decimals Decimal32, Decimal64, Decimal128 ·
//	char Char · timestamp Timestamp · uuid UUID · binary []byte · string string ·
//	symbol Symbol · list List · map Map · array Array · described Described
type (
	// Symbol is an AMQP symbol: ASCII text from a constrained domain.
	Symbol string
	// Char is a UTF-32 code unit, kept as sent.
	Char uint32
	// Timestamp is milliseconds since the Unix epoch.
	Timestamp int64
	// UUID is in RFC 4122 byte order.
	UUID [16]byte
	// Decimal32 is IEEE 754-2008 decimal32, opaque.
	Decimal32 [4]byte
	// Decimal64 is IEEE 754-2008 decimal64, opaque.
	Decimal64 [8]byte
	// Decimal128 is IEEE 754-2008 decimal128, opaque.
	Decimal128 [16]byte
	// List is a list of values of any type.
	List []any
	// Map keeps its entries in the order of the wire; keys may be of any type.
	Map []MapEntry
	// MapEntry is one key and its value.
	MapEntry struct{ Key, Value any }
	// Array holds elements of one type. Type is the constructor byte of its
	// elements; with Descriptor set, each element is a described value of that
	// constructor. Nulls, like any type, are legal elements.
	Array struct {
		Type       byte
		Descriptor any // nil: elements are not described
		Elems      []any
	}
	// Described is a value with a descriptor (symbol or ulong by custom).
	Described struct{ Descriptor, Value any }
)

// TimestampOf returns t as milliseconds since the epoch.
func TimestampOf(t time.Time) Timestamp { return Timestamp(t.UnixMilli()) }

// Time returns the timestamp in UTC.
func (t Timestamp) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// String formats the identifier as RFC 4122 text.
func (u UUID) String() string {
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// GUID swaps between the RFC 4122 and the .NET byte order, in which the first
// three groups are little endian. Service Bus writes delivery tags that way.
func (u UUID) GUID() [16]byte {
	u[0], u[1], u[2], u[3] = u[3], u[2], u[1], u[0]
	u[4], u[5] = u[5], u[4]
	u[6], u[7] = u[7], u[6]
	return u
}

// Get returns the value of the first entry whose key is a string or symbol of
// this text.
func (m Map) Get(key string) (any, bool) {
	for _, e := range m {
		if k, ok := Text(e.Key); ok && k == key {
			return e.Value, true
		}
	}
	return nil, false
}

// String returns the entry's value if it is a string or a symbol.
func (m Map) String(key string) (string, bool) {
	v, _ := m.Get(key)
	return Text(v)
}

// Text returns the text of a string or symbol value.
func Text(v any) (string, bool) {
	switch t := v.(type) {
	case string:
		return t, true
	case Symbol:
		return string(t), true
	}
	return "", false
}

// Integer returns the value of any integer type that fits an int64.
func Integer(v any) (int64, bool) {
	switch t := v.(type) {
	case uint8:
		return int64(t), true
	case uint16:
		return int64(t), true
	case uint32:
		return int64(t), true
	case uint64:
		return int64(t), t <= math.MaxInt64
	case int8:
		return int64(t), true
	case int16:
		return int64(t), true
	case int32:
		return int64(t), true
	case int64:
		return t, true
	}
	return 0, false
}

// Elements returns the elements of a list or an array, because peers use both for several
// values.
func Elements(v any) ([]any, bool) {
	switch t := v.(type) {
	case List:
		return t, true
	case Array:
		if t.Descriptor == nil {
			return t.Elems, true
		}
	}
	return nil, false
}

// SymbolArray returns an array of symbols, for multiple="true" fields.
func SymbolArray(symbols ...Symbol) Array {
	a := Array{Type: codeSym8, Elems: make([]any, len(symbols))}
	for i, s := range symbols {
		a.Elems[i] = s
	}
	return a
}

// LongArray returns an array of long.
func LongArray(values []int64) Array {
	a := Array{Type: codeLong, Elems: make([]any, len(values))}
	for i, v := range values {
		a.Elems[i] = v
	}
	return a
}

// TimestampArray returns an array of timestamp.
func TimestampArray(values []Timestamp) Array {
	a := Array{Type: codeTimestamp, Elems: make([]any, len(values))}
	for i, v := range values {
		a.Elems[i] = v
	}
	return a
}

// StringArray returns an array of string.
func StringArray(values []string) Array {
	a := Array{Type: codeStr8, Elems: make([]any, len(values))}
	for i, v := range values {
		a.Elems[i] = v
	}
	return a
}

// Optional is a field that may be null.
type Optional[T any] struct {
	Value T
	Set   bool
}

// Some returns a field that is set.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

// Or returns the field's value, or def when it is null.
func (o Optional[T]) Or(def T) T {
	if o.Set {
		return o.Value
	}
	return def
}

// DecodeError reports invalid AMQP with its position.
type DecodeError struct {
	Offset int    // byte position in the slice given to the decoder
	Reason string // what was expected or found
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("amqp: decode at byte %d: %s", e.Offset, e.Reason)
}
