package store

import (
	"encoding/binary"
	"encoding/hex"
)

// etagLength is that of an ETag with its quotes.
const etagLength = 38

// appendETag appends the quoted ETag of a write. It is made of the container's
// random number, the position of the write in the container's history and the
// low bits of its time, so it is new on each write and never needs storing.
func appendETag(dst []byte, container rid, at *pointer) []byte {
	var raw [16]byte
	copy(raw[:4], container[len(container)-4:])
	binary.BigEndian.PutUint64(raw[4:], at.written.lsn)
	binary.BigEndian.PutUint16(raw[12:], uint16(at.written.seq))
	binary.BigEndian.PutUint16(raw[14:], uint16(at.millis))
	dst = append(dst, '"')
	for i, part := range [5][]byte{raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return append(dst, '"')
}
