package broker

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// message loads a message or state record. A state record follows its message.
func (l *loader) message(key, value []byte) error {
	h, rest, err := l.holder(key)
	if err != nil {
		return err
	}
	sequence, suffix, err := splitSequence(rest)
	switch last := l.last; {
	case err != nil:
		return err
	case len(suffix) == 1 && suffix[0] == stateSuffix && last != nil && last.sequence == sequence && l.lastIn == h:
		h.withdraw(last)
		if err := parseState(value, last); err != nil {
			return err
		}
		h.restore(last)
		return nil
	case len(suffix) != 0:
		return errKey
	}
	l.swapOutLast()
	m, err := parseMessage(value)
	if err != nil {
		return err
	}
	m.sequence = sequence
	if !h.wasGiven(sequence) {
		return fmt.Errorf("its sequence number %d was not assigned", sequence)
	}
	if err := l.attach(h, m); err != nil {
		return err
	}
	h.index.set(m)
	if h.sessions != nil {
		m.session = h.session(m.body.session)
		m.session.messages++
	}
	h.restore(m)
	l.last, l.lastIn = m, h
	return nil
}

// swapOutLast swaps out the message loaded last, if memory is short.
func (l *loader) swapOutLast() {
	if l.last != nil {
		l.lastIn.swapOut([]*message{l.last})
	}
}

// attach completes m's body.
func (l *loader) attach(h *holder, m *message) error {
	b := m.body
	b.owner = h.ledger
	if !b.shared {
		h.ledger.size.Add(int64(len(b.payload)))
		b.retain(1)
		return nil
	}
	if !h.ledger.shares.known(b.sequence) {
		return fmt.Errorf("its payload %d is missing", b.sequence)
	}
	b.retain(1)
	if l.reading.h != &h.stock {
		l.reading.close()
		l.reading = h.readBack()
	}
	return l.reading.payload(b)
}

// dropOrphan deletes a shared payload without messages. A crash right after the deletion of a
// subscription leaves some.
func (l *loader) dropOrphan(key, value []byte) error {
	in, sequence, err := l.payloadKey(key)
	if err != nil || in.shares.add(sequence, -1) > 0 {
		return err
	}
	in.size.Add(-int64(len(value)))
	return l.db.Delete(key, pebble.NoSync)
}
