package binaryjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// numberSize returns the number of bytes of a number with this marker, 0 for other markers.
func numberSize(marker byte) int {
	switch marker {
	case 0xC8, 0xD7, 0xD8:
		return 1
	case 0xC9, 0xD9, 0xCF:
		return 2
	case 0xCA, 0xDA, 0xDC, 0xCD:
		return 4
	case 0xC7, 0xCB, 0xCC, 0xCE, 0xDB:
		return 8
	}
	return 0
}

func (d *decoder) number(marker byte) error {
	v, err := d.unsigned(numberSize(marker))
	if err != nil {
		return err
	}
	switch marker {
	case 0xC7, 0xC8, 0xD7, 0xDC:
		d.out = strconv.AppendUint(d.out, v, 10)
	case 0xD8:
		d.out = strconv.AppendInt(d.out, int64(int8(v)), 10) //nolint:gosec // one byte
	case 0xC9, 0xD9:
		d.out = strconv.AppendInt(d.out, int64(int16(v)), 10) //nolint:gosec // two bytes
	case 0xCA, 0xDA:
		d.out = strconv.AppendInt(d.out, int64(int32(v)), 10) //nolint:gosec // four bytes
	case 0xCB, 0xDB:
		d.out = strconv.AppendInt(d.out, int64(v), 10) //nolint:gosec // eight bytes
	case 0xCD:
		return d.float(float64(math.Float32frombits(uint32(v)))) //nolint:gosec // four bytes
	case 0xCC, 0xCE:
		return d.float(math.Float64frombits(v))
	default:
		return fmt.Errorf("binary JSON: numbers of type 0x%02x are not supported", marker)
	}
	return nil
}

func (d *decoder) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return errors.New("binary JSON: a number is not finite")
	}
	text, err := json.Marshal(f)
	d.out = append(d.out, text...)
	return err
}
