package broker

// remains is what a holder that is gone has left. Its records go as ranges; what its
// messages shared with others has to be let go of.
type remains struct {
	holder   *stock
	messages []*message
	shared   []int64 // sequence numbers of messages that are swapped out; nil: they share nothing
	own      int64   // bytes of payload of those that share nothing
}

// remains empties the index. Called with h.mu.
func (h *stock) remains() remains {
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
	for i := range h.ready {
		h.ready[i].swapped = sequences{}
	}
	return r
}

// release lets go of payloads. The records are still in the store.
func (r remains) release(w *writer) {
	for _, m := range r.messages {
		m.body.release(w)
	}
	r.holder.ledger.size.Add(-r.own)
	if w == nil || len(r.shared) == 0 {
		return
	}
	w.keep(r.releaseShared(w))
}

// releaseShared reads what was swapped out. Nobody else reads or writes in the holder.
func (r remains) releaseShared(w *writer) error {
	in := r.holder.readBack()
	defer in.close()
	for _, sequence := range r.shared {
		m, err := in.message(sequence)
		if err != nil {
			return err
		}
		if m.body.shared { // else it is among those of own
			m.body.release(w)
		}
	}
	return nil
}
