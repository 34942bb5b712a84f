package epk

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Version 1 hashes to 32 bits. An effective partition key consists of the hash, as a number, and
// the key itself, in an encoding that keeps their order. Source:
// _get_effective_partition_key_for_hash_partitioning of azure-cosmos 4.17.1 (Python), whose
// results the tests use; the bounds of ranges are those that accounts return.

// Strings are hashed up to textUnits UTF-16 units. Of these, textBytes bytes and one more are
// part of the key.
const (
	textUnits = 100
	textBytes = 100
)

func appendV1(dst []byte, k Key) []byte {
	var scratch [256]byte
	text := scratch[:0]
	for _, v := range k {
		text = v.cut().appendEndingWith(text, 0)
	}
	dst = appendNumber(dst, float64(murmur32(text)))
	for _, v := range k {
		dst = v.cut().appendOrdered(dst)
	}
	return dst
}

// cut truncates a string to the hashed length. Half of a surrogate pair becomes the replacement
// character.
func (v Value) cut() Value {
	if len(v.str) > textUnits && utf8.RuneCountInString(v.str) > textUnits/2 {
		if units := utf16.Encode([]rune(v.str)); len(units) > textUnits {
			v.str = string(utf16.Decode(units[:textUnits]))
		}
	}
	return v
}

// appendOrdered appends an encoding whose byte order is the order of values.
func (v Value) appendOrdered(dst []byte) []byte {
	switch v.mark {
	case markNumber:
		return appendNumber(dst, v.num)
	case markString:
		dst = append(dst, v.mark)
		for i := range min(len(v.str), textBytes+1) {
			dst = append(dst, v.str[i]+1) // does not overflow, because UTF-8 has no FF
		}
		if len(v.str) <= textBytes {
			dst = append(dst, 0)
		}
		return dst
	}
	return append(dst, v.mark)
}

const signBit = 1 << 63

// appendNumber appends eight bits, then seven bits per byte. The last bit of each byte is set if
// another byte follows.
func appendNumber(dst []byte, f float64) []byte {
	n := math.Float64bits(f)
	if n < signBit {
		n ^= signBit
	} else {
		n = -n
	}
	dst = append(dst, markNumber, byte(n>>56))
	n <<= 8
	for {
		b, rest := byte(n>>56)&^1, n<<7
		if rest == 0 {
			return append(dst, b)
		}
		dst = append(dst, b|1)
		n = rest
	}
}

// hashes is the number of hashes of 32 bits.
const hashes = 1 << 32

// hashAt returns the hash at the start of a bound: 0 at the start of the space, hashes at its
// end.
func hashAt(bound []byte) float64 {
	switch {
	case len(bound) == 0 || bound[0] < markNumber:
		return 0
	case bound[0] > markNumber:
		return hashes
	}
	var n uint64
	for i, b := range bound[1:min(len(bound), 2+8)] {
		if i == 0 {
			n = uint64(b) << 56
			continue
		}
		n |= uint64(b>>1) << (56 - 7*i)
		if b&1 == 0 {
			break
		}
	}
	return max(0, math.Float64frombits(n^signBit))
}

func middleV1(r Range) []byte {
	return appendNumber(nil, math.Floor((hashAt(r.Min)+hashAt(r.Max))/2))
}

func divideV1(n int) []Range {
	out := make([]Range, 0, n)
	var low []byte
	for i := 1; i < n; i++ {
		high := appendNumber(nil, float64(hashes/uint64(n)*uint64(i)-1))
		out = append(out, Range{Min: low, Max: high})
		low = high
	}
	return append(out, Range{Min: low, Max: []byte{0xFF}})
}

// murmur32 is MurmurHash3 x86 32 with seed 0.
func murmur32(data []byte) uint32 {
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
	var h uint32
	n := uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		h = bits.RotateLeft32(h^mix(binary.LittleEndian.Uint32(data)), 13)*5 + 0xe6546b64
	}
	var tail [4]byte
	copy(tail[:], data)
	h ^= mix(binary.LittleEndian.Uint32(tail[:])) ^ n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
