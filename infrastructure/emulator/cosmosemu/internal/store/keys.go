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
//	c <container> n                       counters: last LSN, last document number
//	c <container> d <document>            document record
//	c <container> i <epk> <len pk> <pk> <id>  -> pointer
//	c <container> x <id> 00 <epk> <pk>    -> document number, length of id
//	c <container> f <segment> <lsn> <seq> -> feed entry
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

func (n keySpace) document(dst []byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64(n.prefix(dst, kindDocument), number)
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
const idEntrySize = 8 + 4

func appendIDEntry(dst []byte, number uint64, id string) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, number), uint32(len(id)))
}

func (n keySpace) segment(dst []byte, segment uint32) []byte {
	return binary.BigEndian.AppendUint32(n.prefix(dst, kindFeed), segment)
}

func (n keySpace) feed(dst []byte, pos position) []byte {
	dst = binary.BigEndian.AppendUint64(n.segment(dst, pos.segment), pos.lsn)
	return binary.BigEndian.AppendUint32(dst, pos.seq)
}

const feedSuffix = 12 // lsn and seq at the end of a feed key

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
