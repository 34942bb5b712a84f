package broker

// SequenceOptions select the messages for ReceiveBySequence.
type SequenceOptions struct {
	Sequences []int64
	Mode      Mode
	// Session is required on entities with sessions; it must have a receiver.
	Session *string
	By      *Receiver // that must hold the session; nil: any
}

// ReceiveBySequence receives deferred messages, all or none (MessageNotFound). done gets them
// when that is durable.
//
// It supports peek-lock and receive-and-delete. On an entity with sessions it refuses a call
// without a session that is held.
//
// Source: com.microsoft:receive-by-sequence-number, azservicebus internal/mgmt.go.
func (b *Broker) ReceiveBySequence(path string, o SequenceOptions, done func([]Delivery, error)) {
	h, err := b.holderAt(path)
	if err != nil {
		done(nil, err)
		return
	}
	var later callbacks
	defer later.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	messages, err := h.deferredMessages(o)
	if err != nil {
		later.call(func() { done(nil, err) })
		return
	}
	now := b.now()
	found := make([]Delivery, 0, len(messages))
	removed := &cancellation{holder: h, done: func(err error) { done(found, err) }}
	for _, m := range messages {
		h.withdraw(m)
		h.counters.Delivered++
		if o.Mode == PeekLock {
			found = append(found, h.lock(m, now+h.config.lockDuration))
			continue
		}
		h.counters.Completed++
		found = append(found, m.delivery())
		removed.recorded = append(removed.recorded, m.recorded)
		removed.messages = append(removed.messages, m)
		h.forget(m)
	}
	h.arm()
	if len(removed.messages) > 0 {
		b.submit(removed, &later)
		return
	}
	later.call(func() { done(found, nil) })
}

// deferredMessages returns the requested messages, each once.
func (h *holder) deferredMessages(o SequenceOptions) ([]*message, error) {
	if err := h.mayReceive(); err != nil {
		return nil, err
	}
	var of *session
	if h.sessions != nil {
		if o.Session == nil {
			return nil, errorf(NotAllowed, "The entity '%s' requires sessions: receive deferred messages of a session by its receiver.", h.path)
		}
		s, err := h.heldSession(*o.Session, o.By.any())
		if err != nil {
			return nil, err
		}
		of = s
	}
	var messages []*message
	asked := make(map[int64]bool, len(o.Sequences))
	for _, sequence := range o.Sequences {
		m := h.lookUp(sequence, inDeferred)
		if m == nil || m.session != of {
			return nil, messageNotFound(sequence, "deferred", h.path)
		}
		if !asked[sequence] {
			asked[sequence] = true
			messages = append(messages, m)
		}
	}
	return messages, nil
}
