package broker

// Settle settles a message of this receiver's entity. done is called when that is durable, or
// with MessageLockLost.
//
// It supports Complete, Abandon, Release, Defer and DeadLetter. It refuses DeadLetter in a
// dead-letter queue.
//
// Source: AMQP 1.0 part 3, section 3.4.
func (r *Receiver) Settle(token LockToken, o Outcome, done func(error)) {
	r.holder.settle(token, o, done)
}

func (h *holder) settle(token LockToken, o Outcome, done func(error)) {
	var later callbacks
	defer later.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	refuse := func(err error) { later.call(func() { done(err) }) }
	if h.gone {
		refuse(h.notFound())
		return
	}
	m := h.find(token)
	if m == nil {
		refuse(lockLost())
		return
	}
	if err := h.maySettle(o); err != nil {
		refuse(err)
		return
	}
	h.settleLocked(m, o, done, h.e.now(), &later)
}

// maySettle returns an error for an outcome that this holder does not support.
func (h *holder) maySettle(o Outcome) error {
	switch {
	case o.Kind < Complete || o.Kind > DeadLetter:
		return errorf(NotImplemented, "Unknown outcome %d.", o.Kind)
	case o.Kind == DeadLetter && h.deadLetter == nil:
		return errorf(NotAllowed, "A message in the dead-letter queue '%s' cannot be dead-lettered again. Complete, abandon or defer it.", h.path)
	}
	return nil
}

// settleLocked settles m, which is locked, after maySettle. Called with h.mu.
func (h *holder) settleLocked(m *message, o Outcome, done func(error), now int64, later *callbacks) {
	switch o.Kind {
	case Complete:
		h.counters.Completed++
		h.remove(m, done, later)
		return
	case Abandon:
		h.counters.Abandoned++
		m.overlay = m.merge(o.Properties)
		h.giveBack(m, true, len(o.Properties) > 0, done, now, later)
	case Release:
		h.counters.Released++
		h.giveBack(m, false, false, done, now, later)
	case Defer:
		h.counters.Deferred++
		m.overlay = m.merge(o.Properties)
		m.deferred = true
		h.giveBack(m, false, true, done, now, later)
	case DeadLetter:
		m.overlay = m.merge(o.Properties)
		h.moveToDeadLetter(m, deadLetterReason{o.Reason, o.Description}, done, later)
	}
	h.serve(now, later)
	h.arm()
}

// remove removes m for good.
func (h *holder) remove(m *message, done func(error), later *callbacks) {
	recorded := m.recorded
	h.forget(m)
	h.e.submit(&completion{holder: h, message: m, recorded: recorded, done: done}, later)
}

// completion removes a message.
type completion struct {
	holder   *holder
	message  *message
	recorded bool
	done     func(error)
}

func (o *completion) write(w *writer) {
	w.deleteMessage(o.holder.id, o.message, o.recorded)
}

func (o *completion) publish(*callbacks) {}

func (o *completion) finish(err error) {
	if o.done != nil {
		o.done(err)
	}
}

// change stores the mutable state of a message that stays in its holder.
func change(h *holder, m *message, done func(error)) op {
	o := &alteration{holder: h, message: m, done: done}
	if h.e.store != nil {
		m.recorded = true
		m.unsaved++
		o.state = appendState(nil, m)
	}
	return o
}

// alteration is a new state of a message.
type alteration struct {
	holder  *holder
	message *message
	state   []byte
	done    func(error)
}

func (o *alteration) write(w *writer) {
	if w != nil {
		w.putState(o.holder.id, o.message.sequence, o.state)
	}
}

// publish swaps the message out, if it was deferred.
func (o *alteration) publish(*callbacks) {
	h, m := o.holder, o.message
	if h.e.store == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m.unsaved--
	if m.place == inDeferred && !h.gone {
		h.swapOut([]*message{m})
	}
}

func (o *alteration) finish(err error) {
	if o.done != nil {
		o.done(err)
	}
}
