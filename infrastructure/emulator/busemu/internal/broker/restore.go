package broker

import "container/heap"

// restore puts a message that was loaded where it belongs. Nothing is expired or
// activated yet: the alarm sees to that once the broker runs.
func (h *holder) restore(m *message) {
	if m.scheduledAt != 0 {
		m.place = inScheduled
		heap.Push(&h.scheduled, m)
		return
	}
	if m.expiresAt != 0 && m.expiryIndex == 0 && !h.config.keepsExpired {
		heap.Push(&h.expiry, m)
	}
	switch {
	case m.deferred:
		m.place = inDeferred
		h.deferred++
	case m.session == nil:
		h.ready.push(m)
	default:
		m.session.ready.push(m)
		if m.session.list == nil {
			h.available.append(m.session)
		}
	}
}
