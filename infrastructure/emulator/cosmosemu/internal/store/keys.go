package store

import (
	"encoding/binary"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

// The key space. Numbers are big-endian, so that byte order is numeric order.
//
//	v                                     format version
//	D <database rid>                      database record
//	C <container number>                  container record
//	O <offer id>                          offer record
//	c <container> n                             last LSN, see counters.go
//	c <container> d <segment> <lsn> <seq>       document record, at the position of its creation
//	c <container> i <epk> <len pk> <pk> <id>    -> pointer
//	c <container> x <id> 00 <epk> <pk>          -> position of the document, length of id
//	c <container> f <segment> <lsn> <seq>       -> feed entry, at the position of the last write
//
// A document that was never replaced has no feed entry: its record stands where
// its feed entry would.
const (
	keyVersion   = 'v'
	keyDatabase  = 'D'
	keyContainer = 'C'
	keyOffer     = 'O'
	keyContent   = 'c'

	kindCounters = 'n'
	kindDocument = 'd'
	kindItem     = 'i'
	kindID       = 'x'
	kindFeed     = 'f'
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

func (n keySpace) counters(dst []byte) []byte { return n.prefix(dst, kindCounters) }

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

// number is the place in one integer, rising with time: the last part of a
// document's resource id. A transaction has fewer than 65,536 writes.
func (p position) number() uint64 { return p.lsn<<16 | uint64(p.seq) }

// fromNumber is a place by its number, in a segment.
func fromNumber(segment uint32, number uint64) position {
	return position{segment: segment, lsn: number >> 16, seq: uint32(number & 0xFFFF)}
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

// historySuffix is the length of lsn and seq at the end of a document or feed key.
const historySuffix = 12

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

// NewPartition computes the place of key. hierarchical is the container's kind.
func NewPartition(key epk.Key, hierarchical bool) *Partition {
	buf := make([]byte, 0, 96)
	buf = epk.Append(buf, key, hierarchical)
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
