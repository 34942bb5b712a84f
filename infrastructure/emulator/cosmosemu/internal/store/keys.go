package store

import (
	"encoding/binary"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

// The key space. Numbers are big-endian, because byte order is then numeric order.
//
//	v                                     format version, see package disk
//	D <database rid>                      database record
//	C <container number>                  container record
//	O <offer id>                          offer record
//	U <user rid>                          user record, with its permissions
//	c <container> n <segment>                   last LSN, see counters.go
//	c <container> d <segment> <lsn> <seq>       document record, at the position of its creation
//	c <container> i <epk> <len pk> <pk> <id>    -> pointer
//	c <container> x <id> 00 <epk> <pk>          -> position of the document, length of id
//	c <container> f <segment> <lsn> <seq>       -> feed entry, at the position of the last write
//	c <container> a <segment> <lsn> <seq>       -> version, see versions.go
//	c <container> t <segment>                   last LSN whose versions were removed
//	c <container> z <segment> <lsn> <seq>       -> document before the transaction, see undo.go
//	c <container> u <epk> <len pk> <pk> <number> <hash>  -> id, see unique.go
//
// A document that was never replaced has no feed entry, because its record has the same
// position.
const (
	keyDatabase  = 'D'
	keyContainer = 'C'
	keyOffer     = 'O'
	keyUser      = 'U'
	keyContent   = 'c'

	kindCounters = 'n'
	kindDocument = 'd'
	kindItem     = 'i'
	kindID       = 'x'
	kindFeed     = 'f'
	kindVersion  = 'a'
	kindTrimmed  = 't'
	kindUnique   = 'u'
	kindUndo     = 'z'
)

// keySpace is the number of a container. It is the prefix of all its keys.
type keySpace uint32

func (n keySpace) prefix(dst []byte, kind byte) []byte {
	dst = append(dst, keyContent)
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	return append(dst, kind)
}

// span returns the bounds of all keys of the container.
func (n keySpace) span() (from, to []byte) {
	from = binary.BigEndian.AppendUint32([]byte{keyContent}, uint32(n))
	return from, after(from)
}

func (n keySpace) counter(dst []byte, segment uint32) []byte {
	return n.segment(dst, kindCounters, segment)
}

// position identifies a write in the history of a container: by segment, transaction and
// order within the transaction.
type position struct {
	segment uint32
	lsn     uint64
	seq     uint32 // order within the transaction
}

const positionSize = 4 + 8 + 4

func (p position) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, p.segment)
	dst = binary.BigEndian.AppendUint64(dst, p.lsn)
	return binary.BigEndian.AppendUint32(dst, p.seq)
}

func decodePosition(b []byte) position {
	return position{segment: binary.BigEndian.Uint32(b), lsn: binary.BigEndian.Uint64(b[4:]), seq: binary.BigEndian.Uint32(b[12:])}
}

// The widths of the parts of a document number in bits, 60 in total. A transaction has fewer
// than 4,096 writes.
const (
	seqBits     = 12
	segmentBits = 16

	maxSegments = 1 << segmentBits
)

// number encodes the position as one integer: the last part of a document's resource id. It
// increases with each insertion into a physical partition, also over splits and merges.
func (p position) number() uint64 {
	return p.lsn<<(segmentBits+seqBits) | uint64(p.segment)<<seqBits | uint64(p.seq)
}

// fromNumber decodes a number.
func fromNumber(number uint64) position {
	return position{
		segment: uint32(number >> seqBits & (maxSegments - 1)),
		lsn:     number >> (segmentBits + seqBits),
		seq:     uint32(number & (1<<seqBits - 1)),
	}
}

func (n keySpace) document(dst []byte, created position) []byte {
	return created.append(n.prefix(dst, kindDocument))
}

// partition appends the common prefix of the items of one logical partition.
func (n keySpace) partition(dst []byte, p *Partition) []byte {
	dst = append(n.prefix(dst, kindItem), p.EPK...)
	dst = binary.AppendUvarint(dst, uint64(len(p.encoded)))
	return append(dst, p.encoded...)
}

func (n keySpace) item(dst []byte, p *Partition, id string) []byte {
	return append(n.partition(dst, p), id...)
}

// id appends the common prefix of the entries of one document id. An id that contains a zero
// byte may share the prefix of a shorter one, so readers must compare the ids.
func (n keySpace) id(dst []byte, id string) []byte {
	return append(append(n.prefix(dst, kindID), id...), 0)
}

func (n keySpace) idEntry(dst []byte, id string, p *Partition) []byte {
	return append(append(n.id(dst, id), p.EPK...), p.encoded...)
}

// idEntrySize is the length of the value of an id entry.
const idEntrySize = positionSize + 4

func appendIDEntry(dst []byte, created position, id string) []byte {
	return binary.BigEndian.AppendUint32(created.append(dst), uint32(len(id)))
}

// segment appends the common prefix of the documents or feed entries of a segment.
func (n keySpace) segment(dst []byte, kind byte, segment uint32) []byte {
	return binary.BigEndian.AppendUint32(n.prefix(dst, kind), segment)
}

func (n keySpace) feed(dst []byte, written position) []byte {
	return written.append(n.prefix(dst, kindFeed))
}

// decodeKeyPosition reads the position at the end of a document or feed key.
func decodeKeyPosition(key []byte) position { return decodePosition(key[len(key)-positionSize:]) }

// before reports whether a position is earlier in the order of numbers: by LSN, then by
// segment.
func (p position) before(other position) bool {
	if p.lsn != other.lsn {
		return p.lsn < other.lsn
	}
	return p.segment < other.segment || p.segment == other.segment && p.seq < other.seq
}

// after returns the smallest key that is greater than all keys with the prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; ; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
}

// Partition is a logical partition: all documents of one partition key value.
type Partition struct {
	Key     epk.Key
	EPK     []byte
	encoded []byte
}

// NewPartition returns the logical partition of a key in a container with the given hash.
func NewPartition(key epk.Key, hash epk.Hash) *Partition {
	p := &struct {
		Partition
		space [56]byte // for the usual length of both encodings, to save an allocation
	}{}
	buf := hash.Append(p.space[:0], key)
	n := len(buf)
	buf = key.Encode(buf)
	p.Partition = Partition{Key: key, EPK: buf[:n:n], encoded: buf[n:]}
	return &p.Partition
}

// Equal reports whether two logical partitions are the same.
func (p *Partition) Equal(other *Partition) bool { return string(p.encoded) == string(other.encoded) }

// Holds reports whether the partition has this key.
func (p *Partition) Holds(key epk.Key) bool {
	var scratch [128]byte
	return string(key.Encode(scratch[:0])) == string(p.encoded)
}
