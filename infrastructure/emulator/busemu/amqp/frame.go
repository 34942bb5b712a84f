package amqp

import (
	"encoding/binary"
	"fmt"
)

// FrameType is the type byte of a frame header (part 2, section 2.3.1).
type FrameType uint8

// The two frame types.
const (
	FrameAMQP FrameType = 0
	FrameSASL FrameType = 1
)

const (
	// FrameHeaderSize is the size of the fixed frame header, and of a protocol
	// header.
	FrameHeaderSize = 8
	// MinMaxFrameSize is the smallest max-frame-size a peer may ask for.
	MinMaxFrameSize = 512
)

// FrameHeader is the fixed header of a frame.
type FrameHeader struct {
	Size    uint32 // of the whole frame
	Doff    uint8  // start of the body in 4-byte words
	Type    FrameType
	Channel uint16
}

// ParseFrameHeader decodes the first [FrameHeaderSize] bytes of a frame.
func ParseFrameHeader(b []byte) (FrameHeader, error) {
	if len(b) < FrameHeaderSize {
		return FrameHeader{}, &DecodeError{Offset: len(b), Reason: "frame header is cut short"}
	}
	h := FrameHeader{
		Size: binary.BigEndian.Uint32(b), Doff: b[4],
		Type: FrameType(b[5]), Channel: binary.BigEndian.Uint16(b[6:]),
	}
	switch {
	case h.Size < FrameHeaderSize:
		return h, &DecodeError{Reason: fmt.Sprintf("frame size %d is below 8", h.Size)}
	case h.Doff < 2:
		return h, &DecodeError{Offset: 4, Reason: fmt.Sprintf("data offset %d is below 2", h.Doff)}
	case uint32(h.Doff)*4 > h.Size:
		return h, &DecodeError{Offset: 4, Reason: fmt.Sprintf("data offset %d is past the frame's end", h.Doff)}
	case h.Type != FrameAMQP && h.Type != FrameSASL:
		return h, &DecodeError{Offset: 5, Reason: fmt.Sprintf("frame type %d is unknown", h.Type)}
	}
	return h, nil
}

// BeginFrame appends a frame header whose size EndFrame fills in.
func BeginFrame(b []byte, t FrameType, channel uint16) (buf []byte, mark int) {
	return append(b, 0, 0, 0, 0, 2, byte(t), byte(channel>>8), byte(channel)), len(b)
}

// EndFrame closes the frame begun at mark.
func EndFrame(b []byte, mark int) []byte {
	binary.BigEndian.PutUint32(b[mark:], uint32(len(b)-mark))
	return b
}

// AppendFrame appends a whole frame around one performative.
func AppendFrame(b []byte, t FrameType, channel uint16, p Performative) []byte {
	b, mark := BeginFrame(b, t, channel)
	return EndFrame(p.Append(b), mark)
}

// AppendEmptyFrame appends the frame without a body that keeps a connection
// from being idle (part 2, section 2.4.5).
func AppendEmptyFrame(b []byte) []byte { return append(b, 0, 0, 0, 8, 2, 0, 0, 0) }

// ProtocolID is the fifth byte of a protocol header (part 2, section 2.2).
type ProtocolID uint8

// The protocols that a connection may begin with.
const (
	ProtocolAMQP ProtocolID = 0
	ProtocolTLS  ProtocolID = 2
	ProtocolSASL ProtocolID = 3
)

// AppendProtocolHeader appends the header of AMQP 1.0.0 with this id.
func AppendProtocolHeader(b []byte, id ProtocolID) []byte {
	return append(b, 'A', 'M', 'Q', 'P', byte(id), 1, 0, 0)
}

// ParseProtocolHeader decodes the 8 bytes that open a connection.
func ParseProtocolHeader(b []byte) (ProtocolID, error) {
	if len(b) < FrameHeaderSize || string(b[:4]) != "AMQP" {
		return 0, &DecodeError{Reason: "not an AMQP protocol header"}
	}
	if b[5] != 1 || b[6] != 0 || b[7] != 0 {
		return 0, &DecodeError{Offset: 5, Reason: fmt.Sprintf("AMQP %d.%d.%d is not spoken here", b[5], b[6], b[7])}
	}
	return ProtocolID(b[4]), nil
}
