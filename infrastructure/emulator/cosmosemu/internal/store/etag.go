package store

import (
	"encoding/binary"
	"encoding/hex"
)

// etagLength is the length of an ETag with its quotes.
const etagLength = 38

// appendETag appends the quoted ETag of a write. It consists of the container's random
// number, the position of the write and the low bits of its time. So it is unique per write
// and need not be stored.
func appendETag(dst []byte, container rid, at *pointer) []byte {
	var raw [16]byte
	copy(raw[:4], container[len(container)-4:])
	binary.BigEndian.PutUint64(raw[4:], at.written.number())
	binary.BigEndian.PutUint32(raw[12:], uint32(at.millis))
	dst = append(dst, '"')
	for i, part := range [5][]byte{raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return append(dst, '"')
}
