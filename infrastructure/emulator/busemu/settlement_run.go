package busemu

import (
	"bytes"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// settlementRun merges dispositions of consecutive deliveries of one link with the same state
// into one frame (section 2.7.6: first to last).
type settlementRun struct {
	s           *session
	role        amqp.Role
	link        link
	state       []byte
	first, last uint32
}

// add adds a disposition. It is sent at the latest when the loop has no more events.
func (r *settlementRun) add(s *session, role amqp.Role, l link, id uint32, state []byte) {
	if r.s != nil && r.link == l && r.role == role && id == r.last+1 && bytes.Equal(r.state, state) {
		r.last = id
		return
	}
	r.flush()
	*r = settlementRun{s: s, role: role, link: l, state: state, first: id, last: id}
}

func (r *settlementRun) flush() {
	if r.s == nil {
		return
	}
	p := amqp.Disposition{Role: r.role, First: r.first, Settled: true, State: r.state}
	if r.last != r.first {
		p.Last = amqp.Some(r.last)
	}
	s, over := r.s, r.link.base().over()
	*r = settlementRun{}
	if !over {
		s.send(&p)
	}
}
