package binaryjson

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// first is the first byte of a binary document. No UTF-8 text starts with it.
const first = 0x80

// maxDepth limits the nesting of values.
const maxDepth = 256

// maxGrowth limits the ratio of a document's text to its size, because repeated references to
// a string could make a small document very large.
const maxGrowth = 64

var (
	errShort = errors.New("binary JSON: it ends too early")
	errDeep  = fmt.Errorf("binary JSON: it nests deeper than %d", maxDepth)
	errLarge = errors.New("binary JSON: its text is too long")
)

// Is reports whether text is a binary document.
func Is(text []byte) bool { return len(text) > 0 && text[0] == first }

// Decode returns the text of a binary document.
func Decode(in []byte) ([]byte, error) {
	d := &decoder{in: in, pos: 1, out: make([]byte, 0, 2*len(in))}
	if !Is(in) {
		return nil, errors.New("binary JSON: it does not start with 0x80")
	}
	if err := d.value(0); err != nil {
		return nil, err
	}
	if d.pos != len(in) {
		return nil, fmt.Errorf("binary JSON: %d bytes after its end", len(in)-d.pos)
	}
	return d.out, nil
}

type decoder struct {
	in  []byte
	pos int
	out []byte
}

// take returns the next n bytes.
func (d *decoder) take(n int) ([]byte, error) {
	if n < 0 || n > len(d.in)-d.pos {
		return nil, errShort
	}
	d.pos += n
	return d.in[d.pos-n : d.pos], nil
}

// unsigned reads a number of 1, 2, 3, 4 or 8 bytes.
func (d *decoder) unsigned(size int) (uint64, error) {
	b, err := d.take(size)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[:], b)
	return binary.LittleEndian.Uint64(wide[:]), nil
}

func (d *decoder) value(depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	marker, err := d.take(1)
	if err != nil {
		return err
	}
	switch m := marker[0]; {
	case m < 0x20:
		d.out = strconv.AppendUint(d.out, uint64(m), 10)
		return nil
	case m == 0xD0:
		d.out = append(d.out, "null"...)
		return nil
	case m == 0xD1:
		d.out = append(d.out, "false"...)
		return nil
	case m == 0xD2:
		d.out = append(d.out, "true"...)
		return nil
	case m >= 0xE0 && m <= 0xE7:
		return d.sequence(m-0xE0, '[', ']', depth)
	case m >= 0xE8 && m <= 0xEF:
		return d.sequence(m-0xE8, '{', '}', depth)
	case m >= 0xF0 && m <= 0xF3:
		return d.uniform(m)
	case numberSize(m) > 0:
		return d.number(m)
	default:
		return d.text(m)
	}
}

// sequence reads the items of an array or the members of an object. The kinds are: no item, one
// item, a length of 1, 2 or 4 bytes, and a length followed by a count.
func (d *decoder) sequence(kind byte, open, end byte, depth int) error {
	d.out = append(d.out, open)
	stop := -1
	switch kind {
	case 0:
		d.out = append(d.out, end)
		return nil
	case 1:
	default:
		size := []int{1, 2, 4}[(kind-2)%3]
		length, err := d.unsigned(size)
		if err != nil {
			return err
		}
		if kind >= 5 {
			if _, err := d.take(size); err != nil {
				return err
			}
		}
		if length > uint64(len(d.in)-d.pos) {
			return errShort
		}
		stop = d.pos + int(length) //nolint:gosec // not above the length of in
	}
	for n := 0; stop < 0 && n == 0 || d.pos < stop; n++ {
		if n > 0 {
			d.out = append(d.out, ',')
		}
		if open == '{' {
			if err := d.name(); err != nil {
				return err
			}
		}
		if err := d.value(depth + 1); err != nil {
			return err
		}
	}
	if stop >= 0 && d.pos != stop {
		return errShort
	}
	d.out = append(d.out, end)
	return nil
}

func (d *decoder) name() error {
	marker, err := d.take(1)
	if err != nil {
		return err
	}
	if err := d.text(marker[0]); err != nil {
		return err
	}
	d.out = append(d.out, ':')
	return nil
}

// uniform reads an array of numbers of one type, or an array of such arrays of one length.
func (d *decoder) uniform(marker byte) error {
	size := 1 + int(marker-0xF0)%2
	if marker < 0xF2 {
		item, count, err := d.uniformHead(size)
		if err != nil {
			return err
		}
		return d.numbers(item, count)
	}
	if _, err := d.take(1); err != nil { // the marker of the inner arrays
		return err
	}
	item, inner, err := d.uniformHead(size)
	if err != nil {
		return err
	}
	outer, err := d.unsigned(size)
	if err != nil {
		return err
	}
	d.out = append(d.out, '[')
	for i := range outer {
		if i > 0 {
			d.out = append(d.out, ',')
		}
		if err := d.numbers(item, inner); err != nil {
			return err
		}
	}
	d.out = append(d.out, ']')
	return nil
}

func (d *decoder) uniformHead(size int) (item byte, count uint64, err error) {
	b, err := d.take(1)
	if err != nil {
		return 0, 0, err
	}
	count, err = d.unsigned(size)
	return b[0], count, err
}

func (d *decoder) numbers(item byte, count uint64) error {
	if numberSize(item) == 0 {
		return fmt.Errorf("binary JSON: 0x%02x is not a type of numbers", item)
	}
	d.out = append(d.out, '[')
	for i := range count {
		if i > 0 {
			d.out = append(d.out, ',')
		}
		if err := d.number(item); err != nil {
			return err
		}
	}
	d.out = append(d.out, ']')
	return d.bounded()
}

func (d *decoder) bounded() error {
	if len(d.out) > maxGrowth*len(d.in)+1024 {
		return errLarge
	}
	return nil
}

// quote appends a string as JSON.
func (d *decoder) quote(s []byte) error {
	if !utf8.Valid(s) {
		return errors.New("binary JSON: a string is not UTF-8")
	}
	d.out = appendQuoted(d.out, s)
	return d.bounded()
}

func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
