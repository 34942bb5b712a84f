package broker

import (
	"cmp"
)

// PeekOptions select the messages to peek.
type PeekOptions struct {
	From    int64   // first sequence number
	Count   int     // limit; default 1
	Session *string // of this session only
}

// Peek returns messages without locking them: ready, locked, deferred and scheduled ones, in
// order of sequence number. A topic is refused (NotAllowed); an unknown session has no messages.
//
// Source: com.microsoft:peek-message, azservicebus internal/mgmt.go.
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
		if m == nil && swappedReady(&h.stock, sequence) {
			m = in.peek(sequence)
		}
		if m == nil || m.place == nowhere || !of.has(m) || m.expired(now) && !h.keepsExpired {
			continue
		}
		found = append(found, m.delivery())
		if len(found) == count {
			break
		}
	}
	return found, nil
}
