package broker

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// writer writes records into one batch. A nil writer, in memory mode, does nothing.
type writer struct {
	batch   *pebble.Batch
	touched map[*numbering]struct{} // their last sequence numbers may have changed
	key     []byte
	value   []byte
	err     error // the first one
}

func (w *writer) keep(err error) {
	if err != nil && w.err == nil {
		w.err = err
	}
}

func (w *writer) set(key, value []byte) { w.keep(w.batch.Set(key, value, nil)) }

// sequence marks n's last sequence numbers to be stored.
func (w *writer) sequence(n *numbering) {
	if w == nil {
		return
	}
	if w.touched == nil {
		w.touched = make(map[*numbering]struct{})
	}
	w.touched[n] = struct{}{}
}

// putSequences completes the batch. It may store a number that was assigned meanwhile for a
// later batch. If that batch is lost the number stays unused, but no number is used twice.
func (w *writer) putSequences() {
	for n := range w.touched {
		w.key = holderKey(w.key[:0], kindSequence, n.id)
		w.value = w.value[:0]
		for p := range n.sequences {
			w.value = binary.BigEndian.AppendUint64(w.value, uint64(n.sequences[p].Load()))
		}
		w.set(w.key, w.value)
	}
}

// putMessage stores a message that is not visible yet.
func (w *writer) putMessage(n *numbering, m *message) {
	if w == nil {
		return
	}
	w.putRecord(n, m)
	if m.hasState() {
		m.recorded = true
		w.value = appendState(w.value[:0], m)
		w.putState(n.id, m.sequence, w.value)
	}
}

// putRecord stores the immutable part of a message.
func (w *writer) putRecord(n *numbering, m *message) {
	w.sequence(n)
	w.key = sequenceKey(w.key[:0], kindMessage, n.id, m.sequence)
	w.value = appendMessage(w.value[:0], m)
	payload := m.body.payload
	if m.body.shared {
		payload = nil
	}
	d := w.batch.SetDeferred(len(w.key), len(w.value)+len(payload))
	copy(d.Key, w.key)
	copy(d.Value[copy(d.Value, w.value):], payload)
	w.keep(d.Finish())
}

func (w *writer) putState(id uint32, sequence int64, state []byte) {
	w.key = append(sequenceKey(w.key[:0], kindMessage, id, sequence), stateSuffix)
	w.set(w.key, state)
}

// deleteMessage deletes a message's records and releases its body. A message record is written
// once before its deletion, so SingleDelete suffices: Pebble drops both when they meet,
// usually before they reach a table.
func (w *writer) deleteMessage(id uint32, m *message, recorded bool) {
	if w != nil {
		w.key = sequenceKey(w.key[:0], kindMessage, id, m.sequence)
		w.keep(w.batch.SingleDelete(w.key, nil))
		if recorded {
			w.key = append(w.key, stateSuffix)
			w.keep(w.batch.Delete(w.key, nil))
		}
	}
	m.body.release(w)
}

func (w *writer) putPayload(b *body) {
	if w == nil {
		return
	}
	w.key = sequenceKey(w.key[:0], kindPayload, b.owner.id, b.sequence)
	w.set(w.key, b.payload)
}

func (w *writer) deletePayload(id uint32, sequence int64) {
	w.key = sequenceKey(w.key[:0], kindPayload, id, sequence)
	w.keep(w.batch.Delete(w.key, nil))
}

func (w *writer) putHistory(id uint32, at, sequence int64, hashes []idHash) {
	if w == nil {
		return
	}
	w.key = historyKey(w.key[:0], id, at, sequence)
	w.value = w.value[:0]
	for i := range hashes {
		w.value = append(w.value, hashes[i][:]...)
	}
	w.set(w.key, w.value)
}

// deleteHistory deletes the ids added at or before a time.
func (w *writer) deleteHistory(id uint32, until int64) {
	if w == nil {
		return
	}
	w.keep(w.batch.DeleteRange(sequenceKey(nil, kindHistory, id, 0), sequenceKey(nil, kindHistory, id, until+1), nil))
}

// putSession stores a session's state; nil removes it.
func (w *writer) putSession(id uint32, session string, at int64, state []byte) {
	if w == nil {
		return
	}
	w.key = append(holderKey(w.key[:0], kindSession, id), session...)
	if state == nil {
		w.keep(w.batch.Delete(w.key, nil))
		return
	}
	w.value = append(binary.BigEndian.AppendUint64(w.value[:0], uint64(at)), state...)
	w.set(w.key, w.value)
}

// deleteHolder removes all records of a holder.
func (w *writer) deleteHolder(n *numbering) {
	if w == nil {
		return
	}
	delete(w.touched, n)
	id := n.id
	for _, kind := range []byte{kindSequence, kindPayload, kindMessage, kindSession, kindHistory} {
		w.keep(w.batch.DeleteRange(holderKey(nil, kind, id), holderKey(nil, kind, id+1), nil))
	}
}

func (w *writer) putEntity(id uint32, record []byte) {
	if w == nil {
		return
	}
	w.key = holderKey(w.key[:0], kindEntity, id)
	w.set(w.key, record)
}

// putLastID stores the highest id given to an entity.
func (w *writer) putLastID(id uint32) {
	if w == nil {
		return
	}
	w.set([]byte{kindLastID}, binary.BigEndian.AppendUint32(nil, id))
}

func (w *writer) deleteEntity(id uint32) {
	if w == nil {
		return
	}
	w.key = holderKey(w.key[:0], kindEntity, id)
	w.keep(w.batch.Delete(w.key, nil))
}
