package broker

import (
	"container/heap"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// message returns the loader of message and state records. A state record follows its
// message.
func (l *loader) message() func(key, value []byte) error {
	var last *message
	return func(key, value []byte) error {
		h, rest, err := l.holder(key)
		if err != nil {
			return err
		}
		sequence, suffix, err := splitSequence(rest)
		switch {
		case err != nil:
			return err
		case len(suffix) == 1 && suffix[0] == stateSuffix && last != nil && last.sequence == sequence && h.index.get(sequence) == last:
			h.withdraw(last)
			if err := parseState(value, last); err != nil {
				return err
			}
			h.restore(last)
			return nil
		case len(suffix) != 0:
			return errKey
		}
		m, err := parseMessage(value)
		if err != nil {
			return err
		}
		m.sequence = sequence
		if sequence > h.sequence.Load() {
			return fmt.Errorf("its sequence number is above the last one given out, %d", h.sequence.Load())
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
		last = m
		return nil
	}
}

// attach gives m its body.
func (l *loader) attach(h *holder, m *message) error {
	m.body.owner = h.inlet
	if m.body.shared {
		k := payloadKey{h.inlet.rest.id, m.body.sequence}
		known := l.bodies[k]
		if known == nil {
			payload, ok := l.payloads[k]
			if !ok {
				return fmt.Errorf("its payload %d is missing", k.sequence)
			}
			m.body.payload = payload
			h.inlet.size.Add(int64(len(payload)))
			l.bodies[k], known = m.body, m.body
		}
		m.body = known
	} else {
		h.inlet.size.Add(int64(len(m.body.payload)))
	}
	m.body.refs.Add(1)
	return nil
}

// dropOrphans removes shared payloads that no message refers to. A crash leaves some if
// it comes just after a subscription was deleted.
func (l *loader) dropOrphans() error {
	for k := range l.payloads {
		if l.bodies[k] != nil {
			continue
		}
		if err := l.db.Delete(sequenceKey(nil, kindPayload, k.holder, k.sequence), pebble.NoSync); err != nil {
			return err
		}
	}
	return nil
}

// restore puts a message that was loaded where it belongs. Nothing is expired or
// activated yet: the alarm sees to that once the broker runs.
func (h *holder) restore(m *message) {
	if m.scheduledAt != 0 {
		m.place = inScheduled
		heap.Push(&h.scheduled, m)
		return
	}
	h.place(m)
	if s := m.session; s != nil && !m.deferred && s.list == nil {
		h.available.append(s)
	}
}
