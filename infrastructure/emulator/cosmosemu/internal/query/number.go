package query

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// parseNumber reads a JSON number as a 64-bit float, with which the service computes. Other
// text is 0.
func parseNumber(raw []byte) float64 {
	if n, ok := smallInteger(raw); ok {
		return float64(n)
	}
	// The error is ignored, because an overflow gives an infinity, which compares correctly.
	f, _ := strconv.ParseFloat(string(raw), 64)
	return f
}

// smallInteger reads an integer of up to 15 digits, which a float represents exactly.
func smallInteger(raw []byte) (int64, bool) {
	digits := raw
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 15 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(raw) {
		n = -n
	}
	return n, true
}

// integer returns a Number that is whole and fits an int64.
func (v Value) integer() (int64, bool) {
	f := v.Float()
	if v.kind != Number || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// appendNumber writes a computed number as JavaScript does: whole numbers without
// a fraction, an exponent only beyond 1e21 and below 1e-6.
func appendNumber(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0') // also for -0
	}
	format := byte('f')
	if a := math.Abs(f); a < 1e-6 || a >= 1e21 {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	// e-07 becomes e-7.
	if n := len(dst); format == 'e' && dst[n-2] == '0' && dst[n-4] == 'e' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// appendString appends text as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func appendString[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
			dst = utf8.AppendRune(dst, r)
			i += size
			continue
		case c >= 0x20:
			dst = append(dst, c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
	}
	return append(dst, '"')
}
