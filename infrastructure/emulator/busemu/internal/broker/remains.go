package broker

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// remains is what a holder that is gone has left. Its records go as ranges; what its
// messages shared with others has to be let go of.
type remains struct {
	holder   *holder
	messages []*message
	shared   []int64 // sequence numbers of messages that are swapped out; nil: they share nothing
	own      int64   // bytes of payload of those that share nothing
}

// remains empties the index. Called with h.mu.
func (h *holder) remains() remains {
	r := remains{holder: h, own: h.index.own}
	for sequence, m := range h.index.from(0) {
		switch {
		case m == nil && h.index.shared > 0:
			r.shared = append(r.shared, sequence)
		case m != nil && m.place != nowhere: // else it is under way out
			r.messages = append(r.messages, m)
		}
	}
	h.index.forgetAll()
	h.ready.swapped = sequences{}
	return r
}

// release lets go of payloads. The records are still in the store.
func (r remains) release(w *writer) {
	for _, m := range r.messages {
		m.body.release(w)
	}
	in := r.holder.inlet
	in.size.Add(-r.own)
	if w == nil || len(r.shared) == 0 {
		return
	}
	w.keep(r.releaseShared(w))
}

func (r remains) releaseShared(w *writer) (err error) {
	h := r.holder
	db := h.b.store.db
	it, err := db.NewIter(&pebble.IterOptions{
		LowerBound: holderKey(nil, kindMessage, h.id), UpperBound: holderKey(nil, kindMessage, h.id+1),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Error(), it.Close()) }()
	var key []byte
	for _, sequence := range r.shared {
		key = sequenceKey(key[:0], kindMessage, h.id, sequence)
		if !it.SeekGE(key) {
			return errRecord
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		m, err := parseMessage(value)
		if err != nil {
			return err
		}
		if !m.body.shared || h.inlet.shares.add(m.body.sequence, -1) > 0 {
			continue
		}
		payload := sequenceKey(nil, kindPayload, h.inlet.rest.id, m.body.sequence)
		if err := view(db.DB, payload, func(value []byte) error {
			h.inlet.size.Add(-int64(len(value)))
			return nil
		}); err != nil {
			return err
		}
		w.deletePayload(h.inlet, m.body.sequence)
	}
	return nil
}
