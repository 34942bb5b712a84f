package broker

// remains has the payloads of a deleted holder. Its records are deleted as ranges; payloads
// shared with other holders must be released.
type remains struct {
	holder   *stock
	messages []*message
	shared   []int64 // swapped out messages that may share their payload
	own      int64   // bytes of payload of swapped out messages that do not share it
}

// remains empties the index. Called with h.mu.
func (h *stock) remains() remains {
	r := remains{holder: h, own: h.index.own}
	for sequence, m := range h.index.from(0) {
		switch {
		case m == nil && h.index.shared > 0:
			r.shared = append(r.shared, sequence)
		case m != nil && m.place != nowhere: // otherwise another op removes it
			r.messages = append(r.messages, m)
		}
	}
	h.index.forgetAll()
	for i := range h.ready {
		h.ready[i].swapped = sequences{}
	}
	return r
}

// release releases the payloads. The records are still in the store.
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

// releaseShared reads the swapped out messages. Nothing else uses the holder any more.
func (r remains) releaseShared(w *writer) error {
	in := r.holder.readBack()
	defer in.close()
	for _, sequence := range r.shared {
		m, err := in.message(sequence)
		if err != nil {
			return err
		}
		if m.body.shared { // otherwise own has it
			m.body.release(w)
		}
	}
	return nil
}
