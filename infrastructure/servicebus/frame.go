package servicebus

import (
	"encoding/binary"

	"github.com/Azure/go-amqp"
)

// AMQP 1.0: the sizes and codes of what answers looks at (part 2, sections 2.3 and 2.7;
// part 3, section 3.4). Performatives are read as the client reads them (go-amqp
// internal/frames/parsing.go): they begin behind the header of 8 bytes, with a small
// descriptor. Anything else ends the client's connection.
const (
	frameHeader = 8
	frameKind   = frameHeader + 3 // bytes that tell the performative
	frameMax    = 64 << 10        // that the client offers

	codeAttach      = 0x12
	codeDisposition = 0x15
	codeDetach      = 0x16
	codeError       = 0x1d
	codeAccepted    = 0x24
	codeRejected    = 0x25

	typeNull  = 0x40
	typeTrue  = 0x41
	typeFalse = 0x42
)

// fields reads the fields of a composite in turn.
type fields struct {
	b    []byte // the fields that are left
	left int    // how many
	bad  bool   // not a composite, or one that ends too early
}

// composite returns the fields of the described list at the front of b.
func composite(b []byte) fields {
	f := fields{bad: true}
	if len(b) < 4 || b[0] != 0 || b[1] != 0x53 {
		return f
	}
	switch b = b[3:]; {
	case b[0] == 0x45: // list0
		return fields{}
	case b[0] == 0xc0 && len(b) >= 3: // list8
		return fields{b: b[3:], left: int(b[2])}
	case b[0] == 0xd0 && len(b) >= 9: // list32
		return fields{b: b[9:], left: int(binary.BigEndian.Uint32(b[5:]))}
	}
	return f
}

var null = []byte{typeNull}

// next returns the next field as it is encoded, null if there is none.
func (f *fields) next() []byte {
	if f.bad || f.left <= 0 {
		return null
	}
	n := sizeOf(f.b)
	if f.bad = n == 0; f.bad {
		return null
	}
	field := f.b[:n]
	f.b, f.left = f.b[n:], f.left-1
	return field
}

// sizeOf returns the size of the value at the front of b, 0 if it is not all there.
func sizeOf(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	size := 0
	switch kind := b[0] >> 4; kind {
	case 0: // described: a descriptor and a value, each of a type of its own
		size = 1
		for range 2 {
			rest := b[size:]
			n := 0
			if b[0] == 0 && len(rest) > 0 && rest[0] != 0 {
				n = sizeOf(rest)
			}
			if n == 0 {
				return 0
			}
			size += n
		}
	case 0x4:
		size = 1
	case 0x5, 0x6, 0x7, 0x8, 0x9:
		size = 1 + 1<<(kind-5)
	case 0xa, 0xc, 0xe:
		if len(b) >= 2 {
			size = 2 + int(b[1])
		}
	case 0xb, 0xd, 0xf:
		if len(b) >= 5 {
			size = 5 + int(binary.BigEndian.Uint32(b[1:]))
		}
	}
	if size > len(b) {
		return 0
	}
	return size
}

// condition returns the condition of an encoded error.
func condition(b []byte) amqp.ErrCond {
	f := composite(b)
	symbol := f.next()
	switch symbol[0] {
	case 0xa3:
		return amqp.ErrCond(symbol[2:])
	case 0xb3:
		return amqp.ErrCond(symbol[5:])
	}
	return ""
}

// appendList appends a composite with fields that are encoded.
func appendList(b []byte, code byte, fields ...[]byte) []byte {
	return appendCompound(append(b, 0, 0x53, code), 0xd0, fields...)
}

// appendCompound appends a list or map of the 32-bit form.
func appendCompound(b []byte, form byte, elements ...[]byte) []byte {
	size := 4
	for _, e := range elements {
		size += len(e)
	}
	b = binary.BigEndian.AppendUint32(append(b, form), uint32(size))
	b = binary.BigEndian.AppendUint32(b, uint32(len(elements)))
	for _, e := range elements {
		b = append(b, e...)
	}
	return b
}
