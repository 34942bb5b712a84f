package broker

import (
	"time"
)

// DeleteOptions select the messages that DeleteMessages deletes.
type DeleteOptions struct {
	Count   int       // upper limit
	Before  time.Time // messages enqueued before it
	Session *string   // of this session only, held or not; nil: of sessions without receiver
}

// DeleteMessages deletes ready messages, the oldest first. It leaves locked, deferred and
// scheduled ones. done receives their number when the deletion is durable.
//
// Source: com.microsoft:batch-delete-messages, azservicebus internal/mgmt.go.
func (b *Broker) DeleteMessages(path string, o DeleteOptions, done func(int, error)) {
	h, err := b.holderAt(path)
	if err != nil {
		done(0, err)
		return
	}
	var later callbacks
	defer later.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.mayReceive(); err != nil {
		later.call(func() { done(0, err) })
		return
	}
	deleted := &cancellation{holder: h}
	for _, m := range h.readyBefore(o) {
		if m.place != inReady {
			h.admit(m) // swapped out until now
		}
		deleted.recorded = append(deleted.recorded, m.recorded)
		deleted.messages = append(deleted.messages, m)
		h.forget(m)
	}
	n := len(deleted.messages)
	h.counters.Completed += int64(n)
	deleted.done = func(err error) { done(n, err) }
	b.submit(deleted, &later)
}

// readyBefore returns the messages to delete. Swapped out ones are read but not swapped in.
func (h *stock) readyBefore(o DeleteOptions) (found []*message) {
	var of *session
	if o.Session != nil {
		if of = h.sessions[*o.Session]; of == nil {
			return nil
		}
	}
	in := h.readBack()
	defer in.close()
	before := nanos(o.Before)
	mayBeOf := of.swappedReady()
	for sequence, m := range h.index.from(0) {
		if len(found) == o.Count {
			break
		}
		if m == nil && h.index.swapped(sequence) == inReady && mayBeOf(h, sequence) {
			if m = in.fetch(sequence); m == nil {
				break
			}
		} else if m == nil || m.place != inReady {
			continue
		}
		s := m.session
		if h.sessions != nil && s == nil {
			s = h.session(m.body.session)
		}
		if m.enqueuedAt < before && (of == nil || s == of) && (of != nil || s == nil || s.receiver == nil) {
			found = append(found, m)
		}
	}
	return found
}
