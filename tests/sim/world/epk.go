package world

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strings"
)

// EPK returns the effective partition key of a text key of up to 100 bytes, version 2 of the hash,
// in hexadecimal. This is a second implementation, so that the verifier does not share a mistake
// with the code under test (azcosmos internal/epk).
func EPK(key string) string {
	const text = 0x08
	low, high := murmur3(append(append([]byte{text}, key...), 0xFF))
	var hash [16]byte
	binary.BigEndian.PutUint64(hash[:], high)
	binary.BigEndian.PutUint64(hash[8:], low)
	hash[0] &= 0x3F
	return strings.ToUpper(hex.EncodeToString(hash[:]))
}

// murmur3 returns the 128-bit MurmurHash3 for 64-bit machines, seed 0.
func murmur3(data []byte) (uint64, uint64) {
	const c1, c2 uint64 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	mix1 := func(k uint64) uint64 { return bits.RotateLeft64(k*c1, 31) * c2 }
	mix2 := func(k uint64) uint64 { return bits.RotateLeft64(k*c2, 33) * c1 }
	var h1, h2 uint64
	rest := data
	for ; len(rest) >= 16; rest = rest[16:] {
		h1 = (bits.RotateLeft64(h1^mix1(binary.LittleEndian.Uint64(rest)), 27)+h2)*5 + 0x52dce729
		h2 = (bits.RotateLeft64(h2^mix2(binary.LittleEndian.Uint64(rest[8:])), 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], rest)
	h1 ^= mix1(binary.LittleEndian.Uint64(tail[:]))
	h2 ^= mix2(binary.LittleEndian.Uint64(tail[8:]))
	h1 ^= uint64(len(data))
	h2 ^= uint64(len(data))
	h1 += h2
	h2 += h1
	h1, h2 = avalanche(h1), avalanche(h2)
	h1 += h2
	return h1, h2 + h1
}

func avalanche(k uint64) uint64 {
	k = (k ^ k>>33) * 0xff51afd7ed558ccd
	k = (k ^ k>>33) * 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}
