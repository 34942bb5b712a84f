package broker

import "container/heap"

// Schedule is Send for messages with ScheduledAt; done gets their sequence numbers. A
// duplicate gets the number 0.
func (b *Broker) Schedule(path string, batch []Message, done func([]int64, error)) {
	in, err := b.inletAt(path)
	if err != nil {
		done(nil, err)
		return
	}
	in.send(batch, &intake{inlet: in, numbers: done})
}

// CancelScheduled removes scheduled messages, all or none (MessageNotFound).
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
		if m.place == inScheduled { // a number may be given twice
			o.recorded = append(o.recorded, m.recorded)
			o.messages = append(o.messages, m)
			h.forget(m)
		}
	}
	b.submit(o, &later)
}

func messageNotFound(sequence int64, state, path string) *Error {
	return errorf(MessageNotFound, "There is no %s message with sequence number %d in '%s'.", state, sequence, path)
}

// cancellation removes several messages of a holder.
type cancellation struct {
	holder   *holder
	messages []*message
	recorded []bool
	done     func(error)
}

func (o *cancellation) write(w *writer) {
	for i, m := range o.messages {
		w.deleteMessage(o.holder, m, o.recorded[i])
	}
}

func (o *cancellation) publish(*callbacks) {}
func (o *cancellation) finish(err error)   { o.done(err) }

// takeDue takes the messages out whose time has come.
func (h *holder) takeDue(now int64) (due []*message) {
	for h.scheduled.Len() > 0 && h.scheduled.messageHeap[0].scheduledAt <= now {
		m := h.scheduled.messageHeap[0]
		h.forget(m)
		due = append(due, m)
	}
	return due
}

// activate enqueues scheduled messages as if they were sent now, with new sequence
// numbers of their partitions. They were checked for duplicates when they were accepted.
func (in *inlet) activate(due []*message, later *callbacks) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.gone {
		return
	}
	o := &intake{inlet: in, from: in.rest, removed: due, at: in.b.now(), parts: make([]part, len(in.targets), len(in.targets)+1)}
	for _, m := range due {
		o.recorded = append(o.recorded, false) // nothing can change while it waits
		o.route(m.body.unshared(), in.rest.nextSequence(partitionOf(m.sequence)), 0, nil)
	}
	in.b.submit(o, later)
}

func (h *expiryHeap) popFirst() { heap.Pop(h) }
