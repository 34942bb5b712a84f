package broker

// Schedule is Send for messages with ScheduledAt. done receives their sequence numbers, 0 for
// a duplicate.
//
// Source: com.microsoft:schedule-message, azservicebus internal/mgmt.go.
func (b *Broker) Schedule(path string, batch []Message, done func([]int64, error)) {
	in, err := b.inletAt(path)
	if err != nil {
		done(nil, err)
		return
	}
	in.send(batch, &intake{inlet: in, numbers: done})
}

// CancelScheduled removes scheduled messages, all or none (MessageNotFound).
//
// Source: com.microsoft:cancel-scheduled-message, azservicebus internal/mgmt.go.
func (b *Broker) CancelScheduled(path string, sequences []int64, done func(error)) {
	in, err := b.inletAt(path)
	if err != nil {
		done(err)
		return
	}
	h := in.rest
	var later callbacks
	defer later.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	cancelled := make([]*message, len(sequences))
	for i, sequence := range sequences {
		m := h.lookUp(sequence, inScheduled)
		if m == nil {
			later.call(func() { done(messageNotFound(sequence, "scheduled", h.path)) })
			return
		}
		cancelled[i] = m
	}
	o := &cancellation{holder: h, done: done}
	for _, m := range cancelled {
		if m.place == inScheduled { // the request may contain a number twice
			o.recorded = append(o.recorded, m.recorded)
			o.messages = append(o.messages, m)
			h.forget(m)
		}
	}
	b.submit(o, &later)
}
