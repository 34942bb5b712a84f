package broker

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// readBack reads swapped out messages from the store. Neighbours that are read in order cost
// little, and the messages of a batch are neighbours. It is used and closed with the holder's
// lock held, and it waits for no write. Without a read it costs nothing.
type readBack struct {
	h                  *stock
	messages, payloads *pebble.Iterator // nil until needed
}

func (h *stock) readBack() readBack { return readBack{h: h} }

func (r *readBack) close() {
	for _, it := range []*pebble.Iterator{r.messages, r.payloads} {
		if it != nil {
			_ = it.Close() // its error was reported when it occurred
		}
	}
	r.messages, r.payloads = nil, nil
}

// swapIn moves a swapped out message back to memory; nil if the store has failed.
func (r *readBack) swapIn(sequence int64) *message {
	m := r.fetch(sequence)
	if m != nil {
		r.h.admit(m)
	}
	return m
}

// peek returns a swapped out message with its place, without moving it to memory.
func (r *readBack) peek(sequence int64) *message {
	m := r.fetch(sequence)
	if m != nil {
		m.place = r.h.index.swapped(sequence)
	}
	return m
}

// fetch returns a swapped out message as it is in the store, without moving it to memory. It
// returns nil if the store has failed, which stops the broker.
func (r *readBack) fetch(sequence int64) *message {
	m, err := r.message(sequence)
	if err != nil {
		r.h.e.store.db.Fail(fmt.Errorf("read message %d of %s: %w", sequence, r.h.path, err))
		return nil
	}
	return m
}

func (r *readBack) message(sequence int64) (*message, error) {
	h := r.h
	value, err := r.seek(&r.messages, kindMessage, h.id, sequence)
	if err != nil {
		return nil, err
	}
	m, err := parseMessage(value)
	if err != nil {
		return nil, err
	}
	m.sequence = sequence
	m.body.owner = h.ledger
	if m.body.shared {
		err = r.payload(m.body)
	} else {
		m.body.refs.Store(1)
	}
	if c := h.index.at(sequence); err == nil && c != nil && c.recorded&(1<<(sequence&chunkMask)) != 0 {
		err = r.state(m)
	}
	return m, err
}

// state reads m's state record, which follows the message record.
func (r *readBack) state(m *message) error {
	key := append(sequenceKey(make([]byte, 0, 16), kindMessage, r.h.id, m.sequence), stateSuffix)
	if !r.messages.Next() || !bytes.Equal(r.messages.Key(), key) {
		return missing(key, r.messages)
	}
	value, err := r.messages.ValueAndErr()
	if err != nil {
		return err
	}
	return parseState(value, m)
}

// payload reads the payload of a body that shares it.
func (r *readBack) payload(b *body) error {
	value, err := r.seek(&r.payloads, kindPayload, r.h.ledger.id, b.sequence)
	b.payload = append([]byte{}, value...)
	return err
}

// seek returns a record's value, valid until the next call.
func (r *readBack) seek(it **pebble.Iterator, kind byte, id uint32, sequence int64) (value []byte, err error) {
	if *it == nil {
		within := &pebble.IterOptions{LowerBound: holderKey(nil, kind, id), UpperBound: holderKey(nil, kind, id+1)}
		if *it, err = r.h.e.store.db.NewIter(within); err != nil {
			return nil, err
		}
	}
	key := sequenceKey(make([]byte, 0, 16), kind, id, sequence)
	if !(*it).SeekGE(key) || !bytes.Equal((*it).Key(), key) {
		return nil, missing(key, *it)
	}
	return (*it).ValueAndErr()
}

// missing is the error of an iterator that did not find a record.
func missing(key []byte, it *pebble.Iterator) error {
	return fmt.Errorf("record %x: %w", key, cmp.Or(it.Error(), pebble.ErrNotFound))
}
