package cosmosfeed

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"feedbox/changefeed"
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

// append adds the 32 hexadecimal digits.
func (k epk) append(text []byte) []byte {
	const digits = "0123456789ABCDEF"
	for _, half := range [2]uint64{k.high, k.low} {
		for shift := 60; shift >= 0; shift -= 4 {
			text = append(text, digits[half>>shift&15])
		}
	}
	return text
}

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

// encodeKey appends the encoding of one key value given as raw JSON; nil is
// undefined, which a document without the member has.
func encodeKey(buf, raw []byte) []byte {
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[':
		return append(buf, markUndefined)
	case raw[0] == '"':
		buf = append(buf, markString)
		if text, plain := jsonscan.Unquote(raw); plain {
			buf = append(buf, text...)
		} else {
			var text string
			if json.Unmarshal(raw, &text) == nil {
				buf = append(buf, text...)
			}
		}
		return append(buf, endOfString)
	case raw[0] == 'n':
		return append(buf, markNull)
	case raw[0] == 't':
		return append(buf, markTrue)
	case raw[0] == 'f':
		return append(buf, markFalse)
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return append(buf, markUndefined)
	}
	return binary.LittleEndian.AppendUint64(append(buf, markNumber), math.Float64bits(n))
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

// keyFilter decides whether a document belongs to a feed range by its own key.
type keyFilter struct {
	rng      changefeed.FeedRange
	all      bool // the whole key space: nothing to decide
	hashed   bool // bounds fit 128 bits
	min, max epk
}

func newKeyFilter(r changefeed.FeedRange, hierarchical bool) keyFilter {
	f := keyFilter{rng: r, all: r.Contains(changefeed.FullRange())}
	if !hierarchical {
		var ok1, ok2 bool
		f.min, ok1 = parseBound(r.Min)
		f.max, ok2 = parseBound(r.Max)
		f.hashed = ok1 && ok2
	}
	return f
}

// has reports whether the document with these key values is in the range.
func (f *keyFilter) has(values [][]byte, scratch *[]byte) bool {
	if f.all {
		return true
	}
	if f.hashed {
		*scratch = encodeKey((*scratch)[:0], values[0])
		key := hashKey(*scratch)
		return !key.less(f.min) && key.less(f.max)
	}
	return f.rng.Has(keyText(values))
}

// keyText is the effective partition key of a whole key in hexadecimal: the
// concatenation of its parts, each hashed by itself.
func keyText(values [][]byte) string {
	var text, encoded []byte
	for _, v := range values {
		encoded = encodeKey(encoded[:0], v)
		text = hashKey(encoded).append(text)
	}
	return string(text)
}
