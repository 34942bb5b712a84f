package broker

import "cmp"

// PeekOptions say where to peek.
type PeekOptions struct {
	From    int64   // first sequence number
	Count   int     // at most that many; default 1
	Session *string // one session only
}

// Peek reads messages without locking them: ready, locked, deferred and scheduled
// ones, in order of sequence number.
func (b *Broker) Peek(path string, o PeekOptions) ([]Delivery, error) {
	h, err := b.holderAt(path)
	if err != nil {
		return nil, err
	}
	now, count := b.now(), cmp.Or(max(0, o.Count), 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return nil, h.notFound()
	}
	var of *session
	if o.Session != nil {
		if of = h.sessions[*o.Session]; of == nil {
			return nil, nil
		}
		count = min(count, of.messages)
	}
	in := h.readBack()
	defer in.close()
	var found []Delivery
	swappedReady := of.swappedReady()
	for sequence, m := range h.index.from(o.From) {
		if m == nil && swappedReady(h, sequence) {
			m = in.glance(sequence)
		}
		if m == nil || m.place == nowhere || !of.has(m) || m.expired(now) && !h.config.keepsExpired {
			continue
		}
		found = append(found, m.delivery())
		if len(found) == count {
			break
		}
	}
	return found, nil
}

// has reports whether m is of session s; nil stands for all sessions.
func (s *session) has(m *message) bool {
	return s == nil || m.session == s || m.session == nil && m.body.session == s.id // which was read back to be looked at
}

// swappedReady returns a function, to be called with rising numbers of messages that are
// swapped out, that reports whether one may be of s. Only those that are ready are known
// to be of a session before they are read.
func (s *session) swappedReady() func(h *holder, sequence int64) bool {
	if s == nil {
		return func(*holder, int64) bool { return true }
	}
	rest := s.ready.swapped // a copy: the session keeps its own
	return func(h *holder, sequence int64) bool {
		if h.index.swapped(sequence) != inReady {
			return true
		}
		for rest.first != 0 && rest.first < sequence {
			rest.pop()
		}
		return rest.first == sequence
	}
}
