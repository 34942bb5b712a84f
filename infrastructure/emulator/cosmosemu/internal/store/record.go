package store

import (
	"encoding/binary"
	"fmt"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/internal/disk"
)

// stamp contains the inputs of a document's expiry and ETag.
type stamp struct {
	millis int64 // Unix time of the write
	ttl    int32 // the document's own time to live, 0 if it has none
}

// pointer is the value of the item index. It contains enough to check preconditions without
// reading the document.
type pointer struct {
	created position // position of the document
	written position // position of its last write
	stamp
}

const pointerSize = 2*positionSize + 8 + 4

func (p *pointer) append(dst []byte) []byte {
	dst = p.written.append(p.created.append(dst))
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.millis))
	return binary.BigEndian.AppendUint32(dst, uint32(p.ttl))
}

func decodePointer(b []byte) (pointer, error) {
	if len(b) < pointerSize {
		return pointer{}, fmt.Errorf("%w: item index entry of %d bytes", disk.ErrDamaged, len(b))
	}
	return pointer{
		created: decodePosition(b),
		written: decodePosition(b[positionSize:]),
		stamp: stamp{
			millis: int64(binary.BigEndian.Uint64(b[2*positionSize:])),
			ttl:    int32(binary.BigEndian.Uint32(b[2*positionSize+8:])),
		},
	}, nil
}

// replaced reports whether the document was written again after its creation. Only then it has
// a feed entry, because otherwise its record has the position of the change.
func (p *pointer) replaced() bool { return p.written != p.created }

// record is a stored document: the pointer, its keys, and the JSON text that a read returns.
type record struct {
	pointer
	epk     []byte
	encoded []byte // partition key
	id      []byte
	body    []byte
}

func appendRecordHead(dst []byte, at *pointer, p *Partition, id string) []byte {
	dst = at.append(dst)
	dst = append(dst, epkLength(len(p.EPK)))
	dst = binary.AppendUvarint(dst, uint64(len(p.encoded)))
	dst = binary.AppendUvarint(dst, uint64(len(id)))
	dst = append(dst, p.EPK...)
	dst = append(dst, p.encoded...)
	return append(dst, id...)
}

// otherLength marks the length of an effective partition key that does not consist of hashes
// of version 2.
const otherLength = 0x80

// epkLength encodes the length of an effective partition key in one byte: as the number of
// levels, or for version 1, whose lengths vary, as the length itself.
func epkLength(n int) byte {
	if n%epk.Size == 0 {
		return byte(n / epk.Size)
	}
	return otherLength | byte(n)
}

func epkSize(b byte) int {
	if b < otherLength {
		return int(b) * epk.Size
	}
	return int(b &^ otherLength)
}

// decodeRecord reads a document record; the result aliases b.
func decodeRecord(b []byte) (r record, err error) {
	if r.pointer, err = decodePointer(b); err != nil {
		return r, err
	}
	rest := b[pointerSize:]
	if len(rest) == 0 {
		return r, damagedRecord(b)
	}
	size, rest := epkSize(rest[0]), rest[1:]
	key, n := binary.Uvarint(rest)
	if n <= 0 {
		return r, damagedRecord(b)
	}
	rest = rest[n:]
	id, n := binary.Uvarint(rest)
	if n <= 0 {
		return r, damagedRecord(b)
	}
	rest = rest[n:]
	// Each length is compared before the sum, which could overflow.
	if left := uint64(len(rest)); key > left || id > left || uint64(size)+key+id > left {
		return r, damagedRecord(b)
	}
	r.epk, rest = rest[:size], rest[size:]
	r.encoded, rest = rest[:key], rest[key:]
	r.id, r.body = rest[:id], rest[id:]
	return r, nil
}

func damagedRecord(b []byte) error {
	return fmt.Errorf("%w: document record of %d bytes", disk.ErrDamaged, len(b))
}

// A feed entry contains the inputs of the page filters, so that filtered entries need no
// read of the document.
const feedEntryHead = positionSize + 8 + 4

func appendFeedEntry(dst []byte, at *pointer, key []byte) []byte {
	dst = at.created.append(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(at.millis))
	dst = binary.BigEndian.AppendUint32(dst, uint32(at.ttl))
	return append(dst, key...)
}

type feedEntry struct {
	created position
	stamp
	epk []byte
}

func decodeFeedEntry(b []byte) (feedEntry, error) {
	if len(b) < feedEntryHead {
		return feedEntry{}, fmt.Errorf("%w: feed entry of %d bytes", disk.ErrDamaged, len(b))
	}
	return feedEntry{
		created: decodePosition(b),
		stamp: stamp{
			millis: int64(binary.BigEndian.Uint64(b[positionSize:])),
			ttl:    int32(binary.BigEndian.Uint32(b[positionSize+8:])),
		},
		epk: b[feedEntryHead:],
	}, nil
}

// lifetime is a container's default time to live in seconds; 0 is off, -1 is on without a
// default.
type lifetime int32

// expired reports whether a document written at s has expired at now (Unix ms).
func (l lifetime) expired(s stamp, now int64) bool {
	if l == 0 {
		return false
	}
	ttl := int64(s.ttl)
	if ttl == 0 {
		ttl = int64(l)
	}
	return ttl > 0 && now >= s.millis+ttl*1000
}
