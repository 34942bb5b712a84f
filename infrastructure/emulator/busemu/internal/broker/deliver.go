package broker

// serve delivers ready messages to receivers with credit, in turns. With sessions, each
// session's messages go to its receiver.
func (h *holder) serve(now int64, later *callbacks) {
	if len(h.browsing) > 0 {
		h.serveBrowsers(now)
	}
	if h.sessions != nil {
		for _, s := range h.toServe {
			s.toServe = false
			if s.receiver != nil {
				receiverOf(s).serveSession(now, later)
			}
		}
		h.toServe = h.toServe[:0]
		return
	}
	for ready := h.waiting(); ready > 0 && len(h.withCredit) > 0; ready = h.waiting() {
		r := h.withCredit[0]
		share := max(1, ready/len(h.withCredit))
		h.withCredit[0], r.withCredit = nil, false
		h.withCredit = h.withCredit[1:]
		taken := h.take(r, share, now, later)
		h.lineUp(r)
		if !taken {
			return
		}
	}
}

// serveSession delivers ready messages of a session to its receiver.
func (r *Receiver) serveSession(now int64, later *callbacks) {
	if !r.gone && r.credit > 0 && r.session.ready.n > 0 {
		r.holder.take(r, r.session.ready.n, now, later)
	}
}

// take delivers up to limit ready messages to r. It reports whether there was one.
func (h *holder) take(r *Receiver, limit int, now int64, later *callbacks) (taken bool) {
	in := h.readBack()
	defer in.close()
	var removed *removal
	for limit > 0 && r.credit > 0 {
		m := h.nextReady(h.listFor(r.session), &in)
		if m == nil {
			break
		}
		taken = true
		h.withdraw(m)
		if m.expired(now) && !h.keepsExpired {
			h.expire(m, later)
			continue
		}
		limit--
		r.credit--
		r.delivered++
		h.counters.Delivered++
		if r.options.Mode == PeekLock {
			r.out = append(r.out, h.lock(m, now+h.config.lockDuration))
			continue
		}
		h.counters.Completed++
		if removed == nil {
			removed = &removal{receiver: r}
		}
		removed.messages = append(removed.messages, m)
	}
	if removed != nil {
		h.removeFor(removed, later)
	}
	r.flush()
	return taken
}

// flush passes the collected messages to the receiver.
func (r *Receiver) flush() {
	if len(r.out) == 0 {
		return
	}
	r.options.Deliver(r.out)
	clear(r.out)
	r.out = r.out[:0]
	if cap(r.out) > 1024 {
		r.out = nil
	}
}
