package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const dumpMessages = 20 // per holder

// Dump returns the entities, their counts, sessions and first messages as text, for the
// messages of failed tests.
func (b *Broker) Dump() string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var w strings.Builder
	fmt.Fprintf(&w, "broker at %s\n", b.Now().Format("2006-01-02T15:04:05.000Z07:00"))
	for _, name := range slices.Sorted(maps.Keys(b.queues)) {
		q := b.queues[name]
		fmt.Fprintf(&w, "queue %s: %s %+v\n", q.name, q.props.Status, q.inlet.read())
		q.holders.dump(&w)
	}
	for _, name := range slices.Sorted(maps.Keys(b.topics)) {
		t := b.topics[name]
		fmt.Fprintf(&w, "topic %s: %s %+v\n", t.name, t.props.Status, t.inlet.read())
		t.inlet.rest.dump(&w)
		for _, name := range slices.Sorted(maps.Keys(t.subscriptions)) {
			s := t.subscriptions[name]
			fmt.Fprintf(&w, "  subscription %s: %s\n", s.name, s.props.Status)
			s.holders.dump(&w)
		}
	}
	return w.String()
}

func (s holders) dump(w *strings.Builder) {
	s.main.dump(w)
	s.deadLetter.dump(w)
}

func (h *holder) dump(w *strings.Builder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.index.n == 0 && len(h.sessions) == 0 && len(h.receivers) == 0 {
		return
	}
	fmt.Fprintf(w, "    %s: %d messages, %d locked, %d deferred, %d scheduled, %d receivers, %d waiting for a session\n",
		h.path, h.index.n, h.inFlight, h.deferred, h.waitingForTime(), len(h.receivers), len(h.waiters.list))
	n := 0
	for sequence, m := range h.index.from(0) {
		if n++; n > dumpMessages {
			fmt.Fprintf(w, "      and %d more\n", h.index.n-dumpMessages)
			break
		}
		if m == nil {
			fmt.Fprintf(w, "      #%d %s, swapped out\n", sequence, h.index.swapped(sequence))
			continue
		}
		fmt.Fprintf(w, "      #%d %s id=%q session=%q attempts=%d %d bytes\n", m.sequence, m.place, m.body.id, m.body.session, m.attempts, len(m.body.payload))
	}
	shown := 0
	for _, id := range slices.Sorted(maps.Keys(h.sessions)) {
		s := h.sessions[id]
		if s.receiver == nil && s.state == nil {
			continue
		}
		if shown++; shown > dumpMessages {
			break
		}
		fmt.Fprintf(w, "      session %q: held=%t state=%d bytes, %d messages, %d ready\n", id, s.receiver != nil, len(s.state), s.messages, s.ready.n)
	}
}
