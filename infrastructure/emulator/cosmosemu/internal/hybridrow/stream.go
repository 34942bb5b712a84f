package hybridrow

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const (
	version       = 0x81
	schemaSegment = 2147473648
	schemaRecord  = 2147473649
	schemaRequest = 2145473648
	schemaResult  = 2145473649

	headerSize  = 1 + 4              // version and schema
	segmentSize = headerSize + 1 + 4 // plus the bit of the length and the length
	recordSize  = headerSize + 4 + 4 // plus the length and the checksum
)

// Is reports whether a body is a stream of rows rather than JSON.
func Is(body []byte) bool { return len(body) > 0 && body[0] == version }

// reader reads values from the front of a buffer. After the first error it returns zeros; the
// caller checks err.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("HybridRow: "+format, args...)
	}
	r.rest = nil
}

func (r *reader) take(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.rest)) {
		r.fail("%d bytes are missing", n-uint64(len(r.rest)))
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) varuint() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail("a length is cut off or too large")
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) text() []byte { return r.take(r.varuint()) }

// header reads the head of a row, which must have the given schema.
func (r *reader) header(schema uint32) {
	if v := r.byte(); r.err == nil && v != version {
		r.fail("version %#x is unknown", v)
	}
	if s := r.uint32(); r.err == nil && s != schema {
		r.fail("schema %d where %d is expected", s, schema)
	}
}

// records calls fn for each record of a stream of one segment.
func records(stream []byte, fn func(row []byte) error) error {
	r := &reader{rest: stream}
	r.header(schemaSegment)
	if present := r.byte(); r.err == nil && present != 1 {
		r.fail("the segment has no length")
	}
	if length := r.uint32(); r.err == nil && length < segmentSize {
		r.fail("the segment's header has %d bytes", length)
	} else if r.err == nil {
		r.take(uint64(length) - segmentSize) // a comment or a schema
	}
	for r.err == nil && len(r.rest) > 0 {
		r.header(schemaRecord)
		length, sum := r.uint32(), r.uint32()
		row := r.take(uint64(length))
		if r.err != nil {
			break
		}
		if crc32.ChecksumIEEE(row) != sum {
			r.fail("the checksum of a record is wrong")
			break
		}
		if err := fn(row); err != nil {
			return err
		}
	}
	return r.err
}

func appendHeader(dst []byte, schema uint32) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, version), schema)
}

func appendSegment(dst []byte) []byte {
	return binary.LittleEndian.AppendUint32(append(appendHeader(dst, schemaSegment), 1), segmentSize)
}

// appendRecord appends a record. fn appends its row.
func appendRecord(dst []byte, fn func([]byte) []byte) []byte {
	dst = appendHeader(dst, schemaRecord)
	head := len(dst)
	dst = append(dst, make([]byte, recordSize-headerSize)...)
	start := len(dst)
	dst = fn(dst)
	binary.LittleEndian.PutUint32(dst[head:], uint32(len(dst)-start))
	binary.LittleEndian.PutUint32(dst[head+4:], crc32.ChecksumIEEE(dst[start:]))
	return dst
}
