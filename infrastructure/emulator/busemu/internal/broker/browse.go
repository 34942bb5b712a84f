package broker

// A browser (Mode Browse) receives a copy of each ready or locked message of a holder, of all
// sessions, once and in order of sequence number, one partition after the other. Deferred and
// scheduled messages are left out. A browser locks nothing. Messages that arrive later follow.
//
// Source: link attribute distribution-mode "copy" of AMQP 1.0 part 3, section 3.5.

// serveBrowsers sends every browser the messages it has not seen.
func (h *holder) serveBrowsers(now int64) {
	for _, r := range h.browsing {
		r.browse(now)
	}
}

func (r *Receiver) browse(now int64) {
	if r.credit == 0 {
		return
	}
	in := r.holder.readBack()
	defer in.close()
	for p := 0; p < len(r.browsed) && r.credit > 0; p++ {
		r.browsePartition(p, &in, now)
	}
	r.flush()
}

func (r *Receiver) browsePartition(p int, in *readBack, now int64) {
	h := r.holder
	for sequence, m := range h.index.tables[p].from(r.browsed[p] + 1) {
		r.browsed[p] = sequence
		if m == nil && h.index.swapped(sequence) == inReady {
			m = in.peek(sequence)
		}
		if m == nil || m.place != inReady && m.place != inLocked || m.expired(now) && !h.keepsExpired {
			continue
		}
		r.credit--
		r.delivered++
		r.out = append(r.out, m.delivery())
		if r.credit == 0 {
			return
		}
	}
}
