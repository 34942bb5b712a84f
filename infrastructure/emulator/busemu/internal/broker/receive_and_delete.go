package broker

// removal removes messages before a ReceiveAndDelete receiver gets them, so that a power
// failure cannot cause a second delivery.
type removal struct {
	receiver *Receiver
	messages []*message
	recorded []bool
}

// removeFor is called with messages that are in the index but in no list.
func (h *holder) removeFor(o *removal, later *callbacks) {
	if h.e.store == nil {
		for _, m := range o.messages {
			h.forget(m)
			m.body.release(nil)
			o.receiver.out = append(o.receiver.out, m.delivery())
		}
		return
	}
	for _, m := range o.messages {
		o.recorded = append(o.recorded, m.recorded)
	}
	o.receiver.removing++
	h.e.submit(o, later)
}

func (o *removal) write(w *writer) {
	for i, m := range o.messages {
		w.deleteMessage(o.receiver.holder.id, m, o.recorded[i])
	}
}

func (o *removal) publish(later *callbacks) {
	r, h := o.receiver, o.receiver.holder
	h.mu.Lock()
	defer h.mu.Unlock()
	r.removing--
	if h.gone {
		return
	}
	for _, m := range o.messages {
		h.forget(m)
		if !r.gone {
			r.out = append(r.out, m.delivery())
		}
	}
	if r.gone {
		o.restore(later)
		return
	}
	r.flush()
	if r.removing == 0 {
		for _, drained := range r.drains {
			at := r.delivered
			later.call(func() { drained(at) })
		}
		r.drains = nil
	}
}

func (o *removal) finish(error) {}

// restore puts messages back that were removed for a receiver which has closed since. No
// client has seen them. The receiver kept its session until now, so that no other receiver
// could overtake.
func (o *removal) restore(later *callbacks) {
	h := o.receiver.holder
	back := &restoration{holder: h}
	for _, m := range o.messages {
		again := *m
		again.body, again.session, again.recorded = m.body.unshared(), nil, false
		again.body.refs.Store(1)
		h.ledger.size.Add(int64(len(again.body.payload)))
		if again.hasState() {
			again.recorded = true
			back.states = append(back.states, appendState(nil, &again))
		} else {
			back.states = append(back.states, nil)
		}
		back.messages = append(back.messages, &again)
	}
	h.e.submit(back, later)
	now := h.e.now()
	h.put(back.messages, now, later)
	if s := o.receiver.session; s != nil && s.receiver == o.receiver && o.receiver.removing == 0 {
		h.releaseSession(s, false, now, later)
	}
	h.serve(now, later)
	h.arm()
}

// restoration stores messages again.
type restoration struct {
	holder   *holder
	messages []*message
	states   [][]byte // nil for a message without
}

func (o *restoration) write(w *writer) {
	for i, m := range o.messages {
		w.putRecord(&o.holder.numbering, m)
		if o.states[i] != nil {
			w.putState(o.holder.id, m.sequence, o.states[i])
		}
	}
}

func (o *restoration) publish(*callbacks) {}

func (o *restoration) finish(error) {}
