package epk

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strings"
)

// Size is the length in bytes of the hash of one level in version 2. MaxSize is the largest
// length of an effective partition key in any version.
const (
	Size    = 16
	MaxSize = 127
)

// topBits clears the two most significant bits, because the keys end at 3F.
const topBits = 0x3F

// Hash is a function that computes effective partition keys.
type Hash uint8

// The hash functions of the service.
const (
	V2        Hash = iota // of a plain key
	V1                    // of a plain key with version 1
	MultiHash             // of a hierarchical key
)

// Append appends the effective partition key of k: 16 bytes in version 2, 16 per level of a
// hierarchical key, up to MaxSize in version 1. A hierarchical key with fewer levels than the
// container gives the common prefix of all keys below it.
func (h Hash) Append(dst []byte, k Key) []byte {
	var scratch [128]byte
	switch h {
	case V1:
		return appendV1(dst, k)
	case MultiHash:
		for _, v := range k {
			dst = appendHash(dst, v.append(scratch[:0]))
		}
		return dst
	case V2:
	}
	return appendHash(dst, k.Encode(scratch[:0]))
}

func appendHash(dst, encoded []byte) []byte {
	low, high := murmur128(encoded)
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, high)
	dst = binary.BigEndian.AppendUint64(dst, low)
	dst[start] &= topBits
	return dst
}

// Range is a half-open window [Min, Max) of the key space in binary form. A nil Min is the start
// of the space.
type Range struct{ Min, Max []byte }

// Full is the whole key space, "" to "FF".
func Full() Range { return Range{Max: []byte{0xFF}} }

// ParseRange reads two hexadecimal bounds in the form of the wire. Trailing zero bytes are
// ignored, because a hierarchical container may pad its bounds.
func ParseRange(minInclusive, maxExclusive string) (Range, error) {
	low, err := parseBound(minInclusive)
	if err != nil {
		return Range{}, err
	}
	high, err := parseBound(maxExclusive)
	if err != nil {
		return Range{}, err
	}
	return Range{Min: low, Max: high}, nil
}

func parseBound(text string) ([]byte, error) {
	if len(text)%2 == 1 {
		text += "0"
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(b, "\x00"), nil
}

// Format returns a bound in the form of the wire: upper-case hexadecimal.
func Format(bound []byte) string { return strings.ToUpper(hex.EncodeToString(bound)) }

// Contains reports whether an effective partition key is in the window.
func (r Range) Contains(key []byte) bool {
	return bytes.Compare(key, r.Min) >= 0 && bytes.Compare(key, r.Max) < 0
}

// Intersect returns the overlap of two windows; ok is false if there is none.
func (r Range) Intersect(other Range) (overlap Range, ok bool) {
	overlap = r
	if bytes.Compare(other.Min, r.Min) > 0 {
		overlap.Min = other.Min
	}
	if bytes.Compare(other.Max, r.Max) < 0 {
		overlap.Max = other.Max
	}
	return overlap, bytes.Compare(overlap.Min, overlap.Max) < 0
}

// Point returns the window of the keys that start with prefix: one logical partition, or all
// partitions below a hierarchical prefix.
func Point(prefix []byte) Range {
	high := bytes.Clone(prefix)
	for i := len(high) - 1; i >= 0; i-- {
		high[i]++
		if high[i] != 0 {
			return Range{Min: prefix, Max: high[:i+1]}
		}
	}
	return Range{Min: prefix, Max: []byte{0xFF}}
}

// Middle returns a bound halfway between the two ends of a window. It ignores the parts of the
// window that cannot contain keys, such as above 3F in version 2.
func (h Hash) Middle(r Range) []byte {
	if h == V1 {
		return middleV1(r)
	}
	var low, high [Size + 1]byte // the first byte is for the carry
	copy(low[1:], r.Min)
	copy(high[1:], r.Max)
	if high[1] > topBits+1 {
		high = [Size + 1]byte{1: topBits + 1}
	}
	var sum uint16
	for i := Size; i >= 0; i-- {
		sum += uint16(low[i]) + uint16(high[i])
		low[i] = byte(sum)
		sum >>= 8
	}
	var rest byte
	for i := range low {
		b := low[i]
		low[i] = b>>1 | rest<<7
		rest = b & 1
	}
	return low[1:]
}

// Divide divides the key space into n windows of equal size: at 1FFF... for two, at 0FFF...,
// 1FFF..., 2FFF... for four, and at 05C1DFFFFFFFFC for two in version 1. The bounds are those of
// Microsoft's emulator (test_circuit_breaker_emulator.py of azure-cosmos 4.17.1).
func (h Hash) Divide(n int) []Range {
	if h == V1 {
		return divideV1(n)
	}
	const high, low = 1<<62 - 1, 1<<64 - 1 // the last key
	wide, rest := uint64(high)/uint64(n), uint64(high)%uint64(n)
	narrow, _ := bits.Div64(rest, low, uint64(n))
	out := make([]Range, 0, n)
	var from []byte
	for i := range uint64(n - 1) {
		carry, end := bits.Mul64(narrow, i+1)
		to := binary.BigEndian.AppendUint64(nil, wide*(i+1)+carry)
		to = binary.BigEndian.AppendUint64(to, end)
		out = append(out, Range{Min: from, Max: to})
		from = to
	}
	return append(out, Range{Min: from, Max: []byte{0xFF}})
}
