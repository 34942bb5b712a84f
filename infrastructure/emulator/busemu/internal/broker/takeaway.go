package broker

// takeaway removes messages before a ReceiveAndDelete receiver gets them, so that no
// loss of power can deliver them twice.
type takeaway struct {
	receiver *Receiver
	messages []*message
	recorded []bool
}

// takeAway is called with messages that are in no list but in the index.
func (h *holder) takeAway(o *takeaway, later *callbacks) {
	if h.b.store == nil {
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
	h.b.submit(o, later)
}

func (o *takeaway) write(w *writer) {
	for i, m := range o.messages {
		w.deleteMessage(o.receiver.holder, m, o.recorded[i])
	}
}

func (o *takeaway) publish(later *callbacks) {
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
	if r.gone { // closed meanwhile: nobody saw them
		h.b.submit(h.restoration(o.messages), later)
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

func (o *takeaway) finish(error) {}

// restoration puts messages back that were removed for a receiver that has gone.
type restoration struct {
	holder   *holder
	messages []*message
}

func (h *holder) restoration(messages []*message) *restoration {
	o := &restoration{holder: h}
	for _, m := range messages {
		again := *m
		again.body = m.body.again()
		again.session, again.recorded = nil, false
		o.messages = append(o.messages, &again)
	}
	return o
}

func (o *restoration) write(w *writer) {
	for _, m := range o.messages {
		m.body.refs.Add(1)
		m.body.owner.size.Add(int64(len(m.body.payload)))
		w.putMessage(o.holder, m)
	}
}

func (o *restoration) publish(later *callbacks) { o.holder.add(o.messages, later) }
func (o *restoration) finish(error)             {}
