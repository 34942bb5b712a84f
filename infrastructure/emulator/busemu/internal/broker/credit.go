package broker

// SetCredit sets the credit as an AMQP flow does (AMQP 1.0 §2.6.7): after deliveryCount
// deliveries the receiver accepts credit more. Deliveries count from 0, modulo 2^32. Ready
// messages are delivered before SetCredit returns, except in mode ReceiveAndDelete with
// storage, which delivers when the removal is durable.
func (r *Receiver) SetCredit(deliveryCount, credit uint32) {
	r.flow(func() {
		left := int32(deliveryCount + credit - r.delivered) // serial numbers (RFC 1982)
		r.credit = uint32(max(0, left))
	})
}

// AddCredit adds to the credit.
func (r *Receiver) AddCredit(n uint32) { r.flow(func() { r.credit += n }) }

func (r *Receiver) flow(change func()) {
	h := r.holder
	var later callbacks
	defer later.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.gone {
		return
	}
	change()
	now := h.e.now()
	switch {
	case r.options.Mode == Browse:
		r.browse(now)
	case r.session == nil:
		h.lineUp(r)
		h.serve(now, &later)
	default:
		r.serveSession(now, &later)
	}
	h.arm()
}

// Drain drops the unused credit. drained is called after the last delivery, with the delivery
// count advanced by the dropped credit.
func (r *Receiver) Drain(drained func(deliveryCount uint32)) {
	h := r.holder
	var later callbacks
	defer later.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	r.delivered += r.credit
	r.credit = 0
	if r.removing > 0 && !r.gone {
		r.drains = append(r.drains, drained)
		return
	}
	at := r.delivered
	later.call(func() { drained(at) })
}
