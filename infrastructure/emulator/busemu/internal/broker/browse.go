package broker

import "slices"

// A browser (Mode Browse) is given copies of the messages of a holder, those of all
// sessions, each once and in order of sequence number: ready and locked ones, not
// deferred and scheduled ones. It takes nothing and locks nothing. Those that arrive
// later follow.

// serveBrowsers gives all browsers what is new to them.
func (h *holder) serveBrowsers(now int64) {
	for _, r := range h.browsing {
		h.browse(r, now)
	}
}

func (h *holder) browse(r *Receiver, now int64) {
	if r.credit == 0 {
		return
	}
	in := h.readBack()
	defer in.close()
	for sequence, m := range h.index.from(r.browsed + 1) {
		r.browsed = sequence
		if m == nil && h.index.swapped(sequence) == inReady {
			m = in.glance(sequence)
		}
		if m == nil || m.place != inReady && m.place != inLocked || m.expired(now) && !h.config.keepsExpired {
			continue
		}
		r.credit--
		r.delivered++
		r.out = append(r.out, m.delivery())
		if r.credit == 0 {
			break
		}
	}
	r.flush()
}

func (h *holder) dropBrowser(r *Receiver) {
	h.browsing = slices.DeleteFunc(h.browsing, func(x *Receiver) bool { return x == r })
}
