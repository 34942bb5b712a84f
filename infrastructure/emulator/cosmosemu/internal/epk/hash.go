package epk

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Size is the length in bytes of the hash of one level.
const Size = 16

// topBits clears the two most significant bits: the space ends at 3F.
const topBits = 0x3F

// Append appends the effective partition key of k: 16 bytes for a plain key,
// 16 per level for a hierarchical one. A key with fewer levels than the
// container is the common prefix of all keys below it.
func Append(dst []byte, k Key, hierarchical bool) []byte {
	var scratch [128]byte
	if !hierarchical {
		return appendHash(dst, k.Encode(scratch[:0]))
	}
	for _, v := range k {
		dst = appendHash(dst, v.append(scratch[:0]))
	}
	return dst
}

func appendHash(dst, encoded []byte) []byte {
	low, high := murmur128(encoded)
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, high)
	dst = binary.BigEndian.AppendUint64(dst, low)
	dst[start] &= topBits
	return dst
}

// Range is a half-open window [Min, Max) of the key space in binary form. A nil
// Min is the start of the space.
type Range struct{ Min, Max []byte }

// Full is the whole key space, "" to "FF".
func Full() Range { return Range{Max: []byte{0xFF}} }

// ParseRange reads two hexadecimal bounds as they travel on the wire. Trailing
// zero bytes do not count: a hierarchical container may pad its bounds.
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

// Format writes a bound as it travels on the wire: upper-case hexadecimal.
func Format(bound []byte) string { return strings.ToUpper(hex.EncodeToString(bound)) }

// Contains tells whether an effective partition key lies in the window.
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

// Point is the window that holds the keys starting with prefix and no others:
// one logical partition, or all partitions below a hierarchical prefix.
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

// Middle returns a bound halfway between the two ends of the window, 16 bytes
// long. The space above 3F holds no keys and does not count.
func (r Range) Middle() []byte {
	var low, high [Size + 1]byte // one byte of carry in front
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

// Divide cuts the key space into n windows of equal size. The bounds between
// them are the service's: 1FFF... for two, 0FFF..., 1FFF..., 2FFF... for four.
func Divide(n int) []Range {
	out := make([]Range, 0, n)
	var low []byte
	for i := 1; i < n; i++ {
		high := bytes.Repeat([]byte{0xFF}, Size)
		binary.BigEndian.PutUint64(high, uint64(i)*(1<<62/uint64(n))-1)
		out = append(out, Range{Min: low, Max: high})
		low = high
	}
	return append(out, Range{Min: low, Max: []byte{0xFF}})
}
