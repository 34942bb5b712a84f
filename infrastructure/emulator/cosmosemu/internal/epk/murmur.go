package epk

import (
	"encoding/binary"
	"math/bits"
)

// murmur128 is MurmurHash3 x64 128 with seed 0. It is not the library that the change feed uses,
// because with two implementations a mistake in either is detected: documents are then searched
// in the wrong range.
func murmur128(data []byte) (low, high uint64) {
	const (
		c1 = 0x87c37b91114253d5
		c2 = 0x4cf5ad432745937f
	)
	var h1, h2 uint64
	n := uint64(len(data))
	for ; len(data) >= 16; data = data[16:] {
		h1 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(data)*c1, 31) * c2
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(data[8:])*c2, 33) * c1
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	if len(data) > 0 {
		var tail [16]byte
		copy(tail[:], data)
		h2 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(tail[8:])*c2, 33) * c1
		h1 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(tail[:])*c1, 31) * c2
	}
	h1 ^= n
	h2 ^= n
	h1 += h2
	h2 += h1
	h1, h2 = finalise(h1), finalise(h2)
	h1 += h2
	h2 += h1
	return h1, h2
}

func finalise(k uint64) uint64 {
	k ^= k >> 33
	k *= 0xff51afd7ed558ccd
	k ^= k >> 33
	k *= 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}
