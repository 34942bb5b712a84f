package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Reader decodes consecutive values from a slice. After the first error every read returns
// zero values and Err stays set, so that callers may check once at the end. The zero Reader is
// at the end of an empty slice.
type Reader struct {
	b      []byte
	pos    int
	err    error
	zeroes int // array elements read so far that took no bytes
}

// NewReader reads b. Values alias b where their type allows it ([]byte).
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Len returns the number of unread bytes.
func (r *Reader) Len() int {
	if r.err != nil {
		return 0
	}
	return len(r.b) - r.pos
}

// Offset returns the position of the next byte.
func (r *Reader) Offset() int { return r.pos }

// Rest returns the bytes not yet read, without reading them.
func (r *Reader) Rest() []byte {
	if r.err != nil {
		return nil
	}
	return r.b[r.pos:]
}

func (r *Reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &DecodeError{Offset: r.pos, Reason: fmt.Sprintf(format, args...)}
	}
}

func (r *Reader) peek() byte {
	if r.err == nil && r.pos < len(r.b) {
		return r.b[r.pos]
	}
	r.fail("unexpected end")
	return codeNull
}

func (r *Reader) byte() byte {
	if r.err == nil && r.pos < len(r.b) {
		c := r.b[r.pos]
		r.pos++
		return c
	}
	r.fail("unexpected end")
	return codeNull
}

// take returns the next n bytes; nil after an error.
func (r *Reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || len(r.b)-r.pos < n {
		r.fail("%d bytes wanted, %d left", n, len(r.b)-r.pos)
		return nil
	}
	b := r.b[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

func (r *Reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *Reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *Reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// size32 reads a 32-bit size or count as an int.
func (r *Reader) size32() int {
	n := r.uint32()
	if n > math.MaxInt32 {
		r.fail("size %d is too large", n)
		return 0
	}
	return int(n)
}

// Null consumes a null and reports whether there was one.
func (r *Reader) Null() bool {
	if r.err == nil && r.pos < len(r.b) && r.b[r.pos] == codeNull {
		r.pos++
		return true
	}
	return false
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	switch c := r.byte(); c {
	case codeTrue:
		return true
	case codeFalse:
		return false
	case codeBool:
		return r.boolByte()
	default:
		r.fail("boolean expected, found constructor 0x%02x", c)
		return false
	}
}

func (r *Reader) boolByte() bool {
	switch c := r.byte(); c {
	case 0:
		return false
	case 1:
		return true
	default:
		r.fail("boolean byte 0x%02x", c)
		return false
	}
}

// Uint8 reads a ubyte.
func (r *Reader) Uint8() uint8 {
	if c := r.byte(); c != codeUbyte {
		r.fail("ubyte expected, found constructor 0x%02x", c)
		return 0
	}
	return r.byte()
}

// Uint16 reads a ushort.
func (r *Reader) Uint16() uint16 {
	if c := r.byte(); c != codeUshort {
		r.fail("ushort expected, found constructor 0x%02x", c)
		return 0
	}
	return r.uint16()
}

// Uint32 reads a uint.
func (r *Reader) Uint32() uint32 {
	switch c := r.byte(); c {
	case codeUint0:
		return 0
	case codeSmallUint:
		return uint32(r.byte())
	case codeUint:
		return r.uint32()
	default:
		r.fail("uint expected, found constructor 0x%02x", c)
		return 0
	}
}

// Uint64 reads a ulong.
func (r *Reader) Uint64() uint64 {
	switch c := r.byte(); c {
	case codeUlong0:
		return 0
	case codeSmallUlong:
		return uint64(r.byte())
	case codeUlong:
		return r.uint64()
	default:
		r.fail("ulong expected, found constructor 0x%02x", c)
		return 0
	}
}

// Timestamp reads a timestamp.
func (r *Reader) Timestamp() Timestamp {
	if c := r.byte(); c != codeTimestamp {
		r.fail("timestamp expected, found constructor 0x%02x", c)
		return 0
	}
	return Timestamp(r.uint64())
}

// Binary reads a binary; the result aliases the input.
func (r *Reader) Binary() []byte {
	switch c := r.byte(); c {
	case codeVbin8:
		return r.take(int(r.byte()))
	case codeVbin32:
		return r.take(r.size32())
	default:
		r.fail("binary expected, found constructor 0x%02x", c)
		return nil
	}
}

// Text reads a string or a symbol.
func (r *Reader) Text() string {
	switch c := r.byte(); c {
	case codeStr8, codeSym8:
		return string(r.take(int(r.byte())))
	case codeStr32, codeSym32:
		return string(r.take(r.size32()))
	default:
		r.fail("string or symbol expected, found constructor 0x%02x", c)
		return ""
	}
}

// compound consumes the constructor, size and count of a list or map whose
// 8-bit form is code8 and 32-bit form is code32. It returns the element count
// and the end position of the elements.
func (r *Reader) compound(code, code8, code32 byte) (count, end int) {
	var size int
	switch code {
	case code8:
		size = int(r.byte())
		end = r.pos + size
		count = int(r.byte())
	case code32:
		size = r.size32()
		end = r.pos + size
		count = r.size32()
	default:
		r.fail("unexpected constructor 0x%02x", code)
	}
	if r.err != nil {
		return 0, r.pos
	}
	if end > len(r.b) || end < r.pos {
		r.fail("size %d exceeds the %d bytes left", size, len(r.b)-r.pos)
		return 0, r.pos
	}
	if count > end-r.pos { // every element takes at least a byte
		r.fail("%d elements cannot fit %d bytes", count, end-r.pos)
		return 0, r.pos
	}
	return count, end
}
