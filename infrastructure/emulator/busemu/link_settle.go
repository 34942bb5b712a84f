package busemu

import (
	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// handleOutcome settles a delivery by the peer's disposition.
func (l *outgoingLink) handleOutcome(d *delivery, state *amqp.State, settled bool) {
	l.idleness.done++
	if d.settling || state.Code == amqp.CodeReceived || state.Code == 0 && !settled {
		return
	}
	if state.Code == amqp.CodeTransactionalState {
		l.settleIn(d, state, settled)
		return
	}
	d.settling, d.echo = true, echoOf(state)
	c, o := l.s.c, outcomeOf(state)
	if settled { // rcv-settle-mode first: the peer expects no answer
		delete(l.s.unsettled, d.id)
	}
	if l.browser { // a browser settles nothing at the entity (part 3, section 3.5.3, distribution-mode)
		l.handleEvent(event{id: d.id})
		return
	}
	if c.undisturbed(&l.linkBase) {
		l.settle(d, o, settled, nil)
		return
	}
	c.perform(work{
		link:      &l.linkBase,
		unordered: true,
		call:      func() *Call { return l.call(OpSettle) },
		serve:     func() { l.settle(d, o, settled, nil) },
		silent:    func(done func()) { l.settle(d, o, true, done) },
		skip:      func() { d.settling = false },
		refuse:    func(err error) { l.handleEvent(event{id: d.id, err: err}) },
		detach:    func(e *Error) { l.detach(wire(e)) },
	})
}

func (l *outgoingLink) call(op Operation) *Call {
	c := &Call{Operation: op, Entity: l.node.path, Link: l.name, Receiver: true}
	if l.source != nil {
		c.Session, _ = l.source.Session()
	}
	return c
}

// settle settles a delivery at the broker and answers when that is durable, unless it is to be
// silent. done, if any, is then called on the loop.
func (l *outgoingLink) settle(d *delivery, o broker.Outcome, silent bool, done func()) {
	c, id := l.s.c, d.id
	l.source.Settle(d.token, o, func(err error) {
		switch {
		case !silent:
			c.post(event{link: l, id: id, err: err})
		case err != nil:
			c.log.Debug("settlement failed", "link", l.name, "error", err)
		}
		if done != nil {
			c.post(event{fn: done})
		}
	})
}

// handleEvent receives the broker's answer to a settlement. The peer gets the applied outcome,
// or rejected with the error.
func (l *outgoingLink) handleEvent(e event) {
	d, ok := l.s.unsettled[e.id]
	if !ok || l.over() {
		return
	}
	delete(l.s.unsettled, e.id)
	if e.err == nil {
		l.s.c.settlements.add(l.s, amqp.RoleSender, l, e.id, d.echo)
		return
	}
	l.s.c.settlements.flush()
	l.s.send(&amqp.Disposition{Role: amqp.RoleSender, First: e.id, Settled: true, State: amqp.Rejected(wireError(e.err))})
}

// outcomeOf maps a delivery state to the service's outcome.
func outcomeOf(s *amqp.State) broker.Outcome {
	switch s.Code {
	case amqp.CodeAccepted:
		return broker.Outcome{Kind: broker.Complete}
	case amqp.CodeModified:
		o := broker.Outcome{Kind: broker.Abandon, Properties: properties(s.MessageAnnotations)}
		if s.UndeliverableHere {
			o.Kind = broker.Defer
		}
		return o
	case amqp.CodeRejected:
		o := broker.Outcome{Kind: broker.DeadLetter}
		if s.Error != nil {
			o.Reason, _ = s.Error.Info.String(deadLetterReason)
			o.Description, _ = s.Error.Info.String(deadLetterDescription)
			o.Properties = properties(s.Error.Info)
		}
		return o
	default: // released, or settled without a state
		return broker.Outcome{Kind: broker.Release}
	}
}

// echoOf returns the state that confirms a settlement: the outcome alone. It omits the error
// of a rejection, because the SDKs treat rejected with an error as a failed settlement
// (go-amqp receiver.go; azure-servicebus _pyamqp/receiver.py).
func echoOf(s *amqp.State) []byte {
	switch s.Code {
	case amqp.CodeAccepted:
		return amqp.StateAccepted
	case amqp.CodeRejected:
		return amqp.Rejected(nil)
	case amqp.CodeModified:
		return (&amqp.State{Code: amqp.CodeModified, DeliveryFailed: s.DeliveryFailed, UndeliverableHere: s.UndeliverableHere}).Append(nil)
	default:
		return amqp.StateReleased
	}
}

// properties returns a settlement's properties to modify, without the dead-letter reason and
// description, which have fields of their own.
func properties(m amqp.Map) []broker.Property {
	var out []broker.Property
	for _, e := range m {
		name, ok := amqp.Text(e.Key)
		if !ok || name == deadLetterReason || name == deadLetterDescription {
			continue
		}
		out = append(out, broker.Property{Name: name, Value: amqp.AppendValue(nil, e.Value)})
	}
	return out
}
