package broker

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// readBack reads messages that are swapped out. If it is asked for them in order, one that
// lies beside the last one costs little: the messages of a batch do. It is used and closed
// with the holder's lock held, which waits for no write. One that reads nothing costs
// nothing.
type readBack struct {
	h                  *stock
	messages, payloads *pebble.Iterator // nil until they are needed
}

func (h *stock) readBack() readBack { return readBack{h: h} }

func (r *readBack) close() {
	for _, it := range []*pebble.Iterator{r.messages, r.payloads} {
		if it != nil {
			_ = it.Close() // what it met was told when it was met
		}
	}
	r.messages, r.payloads = nil, nil
}

// swapIn reads a message back that is swapped out; nil if the store has failed.
func (r *readBack) swapIn(sequence int64) *message {
	m := r.fetch(sequence)
	if m != nil {
		r.h.admit(m)
	}
	return m
}

// glance is fetch for somebody who only looks: the message says where it waits.
func (r *readBack) glance(sequence int64) *message {
	m := r.fetch(sequence)
	if m != nil {
		m.place = r.h.index.swapped(sequence)
	}
	return m
}

// fetch returns a message that is swapped out as it is in the store, and leaves it
// there; nil if the store has failed, which stops the broker.
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

// state reads the record of what has changed about m, which is the next one.
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

// payload reads the payload of a body that has a record of its own.
func (r *readBack) payload(b *body) error {
	value, err := r.seek(&r.payloads, kindPayload, r.h.ledger.id, b.sequence)
	b.payload = append([]byte{}, value...)
	return err
}

// seek returns a record's value, which is good until the next call.
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

// missing is why an iterator did not find a record.
func missing(key []byte, it *pebble.Iterator) error {
	return fmt.Errorf("record %x: %w", key, cmp.Or(it.Error(), pebble.ErrNotFound))
}
