package cosmosfeed

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	"feedbox/changefeed/internal/jsonscan"
)

// Effective partition keys, version 2: MurmurHash3 x64 128 of the encoded value,
// most significant byte first, with the two top bits cleared (azcosmos,
// internal/epk). The SDK does not export them.

// epk is a 128-bit effective partition key.
type epk struct{ high, low uint64 }

func (k epk) less(o epk) bool {
	return k.high < o.high || (k.high == o.high && k.low < o.low)
}

// String is the 32 hexadecimal digits.
func (k epk) String() string { return fmt.Sprintf("%016X%016X", k.high, k.low) }

// parseBound reads a range bound of at most 32 digits, as if zeros followed.
func parseBound(bound string) (epk, bool) {
	if len(bound) > 32 {
		return epk{}, false
	}
	padded := bound + strings.Repeat("0", 32-len(bound))
	high, err1 := strconv.ParseUint(padded[:16], 16, 64)
	low, err2 := strconv.ParseUint(padded[16:], 16, 64)
	return epk{high: high, low: low}, err1 == nil && err2 == nil
}

// Markers of the value encoding that is hashed.
const (
	markUndefined = 0x00
	markNull      = 0x01
	markFalse     = 0x02
	markTrue      = 0x03
	markNumber    = 0x05
	markString    = 0x08
	endOfString   = 0xFF
)

// encodeKey appends the encoding of one key value given as raw JSON. sure is false
// for what nobody should stake a document on: no value at all, an object or an
// array, a number beyond 64 bits, text that is not Unicode.
func encodeKey(buf, raw []byte) (encoded []byte, sure bool) {
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[':
		return append(buf, markUndefined), false
	case raw[0] == '"':
		return encodeText(buf, raw)
	case raw[0] == 'n':
		return append(buf, markNull), true
	case raw[0] == 't':
		return append(buf, markTrue), true
	case raw[0] == 'f':
		return append(buf, markFalse), true
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return append(buf, markUndefined), false
	}
	return binary.LittleEndian.AppendUint64(append(buf, markNumber), math.Float64bits(n)), true
}

func encodeText(buf, raw []byte) (encoded []byte, sure bool) {
	text, sure := jsonscan.Unquote(raw)
	if !sure {
		var unescaped string
		if json.Unmarshal(raw, &unescaped) != nil {
			return append(buf, markUndefined), false
		}
		text, sure = []byte(unescaped), !strings.ContainsRune(unescaped, utf8.RuneError) // half a surrogate pair
	}
	return append(append(append(buf, markString), text...), endOfString), sure
}

// hashKey is the effective partition key of an encoded value.
func hashKey(encoded []byte) epk {
	low, high := murmur3(encoded)
	return epk{high: high & (1<<62 - 1), low: low}
}

// murmur3 is MurmurHash3 x64 128 with seed 0, first and second half.
func murmur3(data []byte) (h1, h2 uint64) {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	length := uint64(len(data))
	for ; len(data) >= 16; data = data[16:] {
		k1, k2 := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
		h1 ^= bits.RotateLeft64(k1*c1, 31) * c2
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= bits.RotateLeft64(k2*c2, 33) * c1
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], data)
	h2 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(tail[8:])*c2, 33) * c1
	h1 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(tail[:])*c1, 31) * c2
	h1 ^= length
	h2 ^= length
	h1 += h2
	h2 += h1
	h1, h2 = finalMix(h1), finalMix(h2)
	h1 += h2
	return h1, h2 + h1
}

func finalMix(k uint64) uint64 {
	k ^= k >> 33
	k *= 0xff51afd7ed558ccd
	k ^= k >> 33
	k *= 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}
