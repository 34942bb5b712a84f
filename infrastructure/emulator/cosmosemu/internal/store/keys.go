package store

import (
	"encoding/binary"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

// The key space. Numbers are big-endian, so that byte order is numeric order.
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
//	c <container> t <segment>                   last LSN whose versions are gone
//	c <container> u <epk> <len pk> <pk> <number> <hash>  -> id, see unique.go
//
// A document that was never replaced has no feed entry: its record stands where
// its feed entry would.
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
)

// keySpace is the number of a container, which prefixes all its keys.
type keySpace uint32

func (n keySpace) prefix(dst []byte, kind byte) []byte {
	dst = append(dst, keyContent)
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	return append(dst, kind)
}

// span is the window that holds all keys of the container.
func (n keySpace) span() (from, to []byte) {
	from = binary.BigEndian.AppendUint32([]byte{keyContent}, uint32(n))
	return from, after(from)
}

func (n keySpace) counter(dst []byte, segment uint32) []byte {
	return n.segment(dst, kindCounters, segment)
}

// position is a place in the history of a container: a write, of a transaction,
// to a physical partition.
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

// The widths of the parts of a number, which has 60 bits. A transaction has fewer
// than 4,096 writes.
const (
	seqBits     = 12
	segmentBits = 16

	maxSegments = 1 << segmentBits
)

// number is the place in one integer: the last part of a document's resource id. It
// rises with each insertion into a physical partition, over splits and merges too.
func (p position) number() uint64 {
	return p.lsn<<(segmentBits+seqBits) | uint64(p.segment)<<seqBits | uint64(p.seq)
}

// fromNumber is a place by its number.
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

// partition is the common prefix of the items of one logical partition.
func (n keySpace) partition(dst []byte, p *Partition) []byte {
	dst = append(n.prefix(dst, kindItem), p.EPK...)
	dst = binary.AppendUvarint(dst, uint64(len(p.encoded)))
	return append(dst, p.encoded...)
}

func (n keySpace) item(dst []byte, p *Partition, id string) []byte {
	return append(n.partition(dst, p), id...)
}

// id is the common prefix of the entries of one document id. An id with a zero
// byte in it may share the prefix of a shorter one: readers compare.
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

// segment is the common prefix of the documents or feed entries of a segment.
func (n keySpace) segment(dst []byte, kind byte, segment uint32) []byte {
	return binary.BigEndian.AppendUint32(n.prefix(dst, kind), segment)
}

func (n keySpace) feed(dst []byte, written position) []byte {
	return written.append(n.prefix(dst, kindFeed))
}

// decodeKeyPosition reads the place at the end of a document or feed key.
func decodeKeyPosition(key []byte) position { return decodePosition(key[len(key)-positionSize:]) }

// before tells whether a place comes earlier in the order of LSNs, for the same LSN
// in that of segments: the order of numbers.
func (p position) before(other position) bool {
	if p.lsn != other.lsn {
		return p.lsn < other.lsn
	}
	return p.segment < other.segment || p.segment == other.segment && p.seq < other.seq
}

// after returns the smallest key greater than all keys starting with prefix.
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

// NewPartition computes the place of key in a container that hashes so.
func NewPartition(key epk.Key, hash epk.Hash) *Partition {
	buf := make([]byte, 0, 96)
	buf = hash.Append(buf, key)
	n := len(buf)
	buf = key.Encode(buf)
	return &Partition{Key: key, EPK: buf[:n:n], encoded: buf[n:]}
}

// Equal tells whether two logical partitions are the same.
func (p *Partition) Equal(other *Partition) bool { return string(p.encoded) == string(other.encoded) }

// Holds tells whether key is that of the partition.
func (p *Partition) Holds(key epk.Key) bool {
	var scratch [128]byte
	return string(key.Encode(scratch[:0])) == string(p.encoded)
}
