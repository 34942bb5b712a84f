package cosmosfeed

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"feedbox/changefeed/internal/jsonscan"

	"github.com/twmb/murmur3"
)

// Effective partition keys, version 2: MurmurHash3 x64 128 of the encoded value, most
// significant byte first, with the two top bits cleared (azcosmos, internal/epk). They are
// computed here because the SDK does not export them.

// epk is a 128-bit effective partition key.
type epk struct{ high, low uint64 }

func (k epk) less(o epk) bool {
	return k.high < o.high || (k.high == o.high && k.low < o.low)
}

// String returns the 32 hexadecimal digits.
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

// encodeKey appends the encoding of one key value given as raw JSON. sure is false if the
// service may encode the value differently: no value, an object or an array, a number
// beyond 64 bits, text that is not Unicode. A narrow lease then refuses the document,
// because it would otherwise rely on a wrong hash.
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
	return appendText(buf, text), sure
}

func appendText[T string | []byte](buf []byte, text T) []byte {
	return append(append(append(buf, markString), text...), endOfString)
}

// hashKey returns the effective partition key of an encoded value.
func hashKey(encoded []byte) epk {
	low, high := murmur3.Sum128(encoded)
	return epk{high: high & (1<<62 - 1), low: low}
}
