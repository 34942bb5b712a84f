package binaryjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Encode converts a JSON text to binary JSON. Numbers that are not whole or too large become
// doubles.
func Encode(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return encode([]byte{first}, d, 0)
}

func encode(dst []byte, d *json.Decoder, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	token, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("binary JSON: %w", err)
	}
	switch t := token.(type) {
	case nil:
		return append(dst, 0xD0), nil
	case bool:
		if t {
			return append(dst, 0xD2), nil
		}
		return append(dst, 0xD1), nil
	case string:
		return encodeString(dst, t), nil
	case json.Number:
		return encodeNumber(dst, t.String())
	case json.Delim:
		marker := byte(0xE4) // an array with a length of 4 bytes
		if t == '{' {
			marker = 0xEC
		}
		at := len(dst)
		dst = append(dst, marker, 0, 0, 0, 0)
		for d.More() { // the names of members are values too
			if dst, err = encode(dst, d, depth+1); err != nil {
				return nil, err
			}
		}
		if _, err := d.Token(); err != nil {
			return nil, fmt.Errorf("binary JSON: %w", err)
		}
		length := len(dst) - at - 5
		if length > math.MaxUint32 {
			return nil, errLarge
		}
		binary.LittleEndian.PutUint32(dst[at+1:], uint32(length)) //nolint:gosec // checked above
		return dst, nil
	}
	return nil, errors.New("binary JSON: an unknown token")
}

func encodeString(dst []byte, s string) []byte {
	switch n := len(s); {
	case n < 64:
		dst = append(dst, 0x80+byte(n)) //nolint:gosec // below 64
	case n <= math.MaxUint8:
		dst = append(dst, 0xC0, byte(n))
	case n <= math.MaxUint16:
		dst = binary.LittleEndian.AppendUint16(append(dst, 0xC1), uint16(n))
	default:
		dst = binary.LittleEndian.AppendUint32(append(dst, 0xC2), uint32(n)) //nolint:gosec // documents have at most 2 MB
	}
	return append(dst, s...)
}

func encodeNumber(dst []byte, text string) ([]byte, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		switch {
		case n >= 0 && n < 0x20:
			return append(dst, byte(n)), nil
		case n >= 0 && n <= math.MaxUint8:
			return append(dst, 0xC8, byte(n)), nil
		case n >= math.MinInt16 && n <= math.MaxInt16:
			return binary.LittleEndian.AppendUint16(append(dst, 0xC9), uint16(n)), nil //nolint:gosec // the same bits
		case n >= math.MinInt32 && n <= math.MaxInt32:
			return binary.LittleEndian.AppendUint32(append(dst, 0xCA), uint32(n)), nil //nolint:gosec // the same bits
		}
		return binary.LittleEndian.AppendUint64(append(dst, 0xCB), uint64(n)), nil //nolint:gosec // the same bits
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("binary JSON: %w", err)
	}
	return binary.LittleEndian.AppendUint64(append(dst, 0xCC), math.Float64bits(f)), nil
}
