package binaryjson

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// systemStrings are the strings with markers of their own, from 0x20 on.
var systemStrings = [32]string{
	"$s", "$t", "$v", "_attachments", "_etag", "_rid", "_self", "_ts",
	"attachments/", "coordinates", "geometry", "GeometryCollection", "id", "url", "Value", "label",
	"LineString", "link", "MultiLineString", "MultiPoint", "MultiPolygon", "name", "Name", "Type",
	"Point", "Polygon", "properties", "type", "value", "Feature", "FeatureCollection", "_id",
}

// The alphabets of strings with four bits per character.
const (
	lowerHex = "0123456789abcdef"
	upperHex = "0123456789ABCDEF"
	dateTime = " 0123456789:-.TZ"
)

// text reads the string with this marker and writes it to the output.
func (d *decoder) text(marker byte) error {
	s, err := d.string(marker)
	if err != nil {
		return err
	}
	return d.quote(s)
}

// string reads a string. A reference points to a string at another position, which must not be
// a reference.
func (d *decoder) string(marker byte) ([]byte, error) {
	if marker < 0xC3 || marker > 0xC6 {
		return d.direct(marker)
	}
	at, err := d.unsigned(int(marker-0xC3) + 1)
	if err != nil {
		return nil, err
	}
	if at == 0 || at >= uint64(len(d.in)) {
		return nil, errShort
	}
	there := &decoder{in: d.in, pos: int(at) + 1} //nolint:gosec // below the length of in
	return there.direct(d.in[at])
}

func (d *decoder) direct(marker byte) ([]byte, error) {
	switch {
	case marker >= 0x20 && marker < 0x40:
		return []byte(systemStrings[marker-0x20]), nil
	case marker >= 0x80 && marker < 0xC0:
		return d.take(int(marker - 0x80))
	case marker >= 0xC0 && marker <= 0xC2:
		length, err := d.unsigned(1 << (marker - 0xC0))
		if err != nil || length > uint64(len(d.in)) {
			return nil, errShort
		}
		return d.take(int(length)) //nolint:gosec // not above the length of in
	}
	switch marker {
	case 0x71, 0x73:
		return d.base64(1, marker == 0x73)
	case 0x72, 0x74:
		return d.base64(2, marker == 0x74)
	case 0x75:
		return d.guid(lowerHex)
	case 0x76:
		return d.guid(upperHex)
	case 0x77:
		s, err := d.guid(lowerHex)
		return []byte(`"` + string(s) + `"`), err
	case 0x78:
		return d.chosen(lowerHex)
	case 0x79:
		return d.chosen(upperHex)
	case 0x7A:
		return d.chosen(dateTime)
	case 0x7B, 0x7C, 0x7D:
		return d.packed(1, true, int(marker-0x7B)+4)
	case 0x7E:
		return d.packed(1, false, 7)
	case 0x7F:
		return d.packed(2, false, 7)
	}
	return nil, fmt.Errorf("binary JSON: the marker 0x%02x is not supported here", marker)
}

// bits reads n numbers of width bits, the lowest bits of each byte first.
func (d *decoder) bits(n, width int) ([]byte, error) {
	in, err := d.take((n*width + 7) / 8)
	if err != nil {
		return nil, err
	}
	out := make([]byte, n)
	for i := range out {
		at := i * width
		v := uint(in[at/8]) >> (at % 8)
		if rest := 8 - at%8; rest < width {
			v |= uint(in[at/8+1]) << rest
		}
		out[i] = byte(v & (1<<width - 1)) //nolint:gosec // width is at most 7
	}
	return out, nil
}

// chosen reads a string over an alphabet of sixteen characters.
func (d *decoder) chosen(characters string) ([]byte, error) {
	n, err := d.unsigned(1)
	if err != nil {
		return nil, err
	}
	out, err := d.bits(int(n), 4) //nolint:gosec // one byte
	for i := range out {
		out[i] = characters[out[i]]
	}
	return out, err
}

// packed reads a string whose characters are stored as differences to the lowest one.
func (d *decoder) packed(size int, based bool, width int) ([]byte, error) {
	n, err := d.unsigned(size)
	if err != nil {
		return nil, err
	}
	var base uint64
	if based {
		if base, err = d.unsigned(1); err != nil {
			return nil, err
		}
	}
	out, err := d.bits(int(n), width) //nolint:gosec // two bytes at most
	for i := range out {
		out[i] += byte(base) //nolint:gosec // one byte
	}
	return out, err
}

func (d *decoder) guid(characters string) ([]byte, error) {
	digits, err := d.bits(32, 4)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, 36)
	for i, digit := range digits {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			out = append(out, '-')
		}
		out = append(out, characters[digit])
	}
	return out, nil
}

// base64 reads a string that is itself base64. Its length is a multiple of four characters. If
// the padding is omitted, its length is stored as the complement.
func (d *decoder) base64(size int, url bool) ([]byte, error) {
	fours, err := d.unsigned(size)
	if err != nil {
		return nil, err
	}
	padding, err := d.unsigned(1)
	if err != nil {
		return nil, err
	}
	omitted := padding > 2
	if omitted {
		padding ^= 0xFF
	}
	length := int(fours) * 4 //nolint:gosec // two bytes at most
	if padding > 2 || int(padding) > length {
		return nil, errShort
	}
	in, err := d.take((length - int(padding)) * 3 / 4)
	if err != nil {
		return nil, err
	}
	out := base64.StdEncoding.EncodeToString(in)
	if omitted {
		out = strings.TrimRight(out, "=")
	}
	if url {
		out = strings.NewReplacer("+", "-", "/", "_").Replace(out)
	}
	return []byte(out), nil
}
