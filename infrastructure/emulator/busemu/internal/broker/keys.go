package broker

import (
	"encoding/binary"
	"errors"
)

// Keys start with the kind of the record. All but the first three continue with the holder's
// id (4 bytes, big-endian), so that a holder's records can be deleted as ranges.
//
//	v                           format of the store
//	i                           highest id given to an entity
//	e entity                    entity, JSON
//	n holder                    last sequence numbers, 8 bytes for each partition
//	p holder sequence           payload shared by several messages (holder: the topic's)
//	m holder sequence           message
//	m holder sequence 's'       changes of the message since it was enqueued
//	x holder session            session state
//	d holder time sequence      hashes of message ids added at that time
const (
	kindVersion  = 'v' // see package disk
	kindLastID   = 'i'
	kindEntity   = 'e'
	kindSequence = 'n'
	kindPayload  = 'p'
	kindMessage  = 'm'
	kindSession  = 'x'
	kindHistory  = 'd'

	stateSuffix = 's'
)

// storeVersion is the value of the version record.
const storeVersion = "busemu 1"

var errKey = errors.New("malformed key")

func holderKey(buf []byte, kind byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(buf, kind), id)
}

func sequenceKey(buf []byte, kind byte, id uint32, sequence int64) []byte {
	return binary.BigEndian.AppendUint64(holderKey(buf, kind, id), uint64(sequence))
}

func historyKey(buf []byte, id uint32, at, sequence int64) []byte {
	return binary.BigEndian.AppendUint64(sequenceKey(buf, kindHistory, id, at), uint64(sequence))
}

// splitKey is the inverse of holderKey; rest follows the id.
func splitKey(key []byte) (id uint32, rest []byte, err error) {
	if len(key) < 5 {
		return 0, nil, errKey
	}
	return binary.BigEndian.Uint32(key[1:]), key[5:], nil
}

func splitSequence(rest []byte) (sequence int64, suffix []byte, err error) {
	if len(rest) < 8 {
		return 0, nil, errKey
	}
	return int64(binary.BigEndian.Uint64(rest)), rest[8:], nil
}

// idHash represents a message id by 128 bits of SHA-256. Among 36 million ids in a window, two
// have the same hash with a probability below 10^-22.
type idHash [16]byte
