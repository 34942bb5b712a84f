package busemu

import (
	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// handleOutcome settles a delivery as the peer's disposition says.
func (l *outgoingLink) handleOutcome(d *delivery, state *amqp.State, settled bool) {
	if d.settling || state.Code == amqp.CodeReceived || state.Code == 0 && !settled {
		return
	}
	d.settling = true
	c, id := l.s.c, d.id
	if settled { // rcv-settle-mode first: the peer expects no answer
		delete(l.s.unsettled, id)
		l.receiver.Settle(d.token, outcomeOf(state), func(err error) {
			if err != nil {
				c.log.Debug("settlement failed", "link", l.name, "error", err)
			}
		})
		return
	}
	l.receiver.Settle(d.token, outcomeOf(state), func(err error) {
		c.post(event{link: l, id: id, err: err})
	})
}

// handleEvent is the broker's answer to a settlement. The peer is answered with
// accepted whatever the outcome was, or with rejected and the error.
func (l *outgoingLink) handleEvent(e event) {
	if _, ok := l.s.unsettled[e.id]; !ok || l.over() {
		return
	}
	delete(l.s.unsettled, e.id)
	if e.err == nil {
		l.s.c.settlements.accepted(l.s, amqp.RoleSender, l, e.id)
		return
	}
	l.s.c.settlements.flush()
	l.s.send(&amqp.Disposition{Role: amqp.RoleSender, First: e.id, Settled: true, State: amqp.Rejected(wireError(e.err))})
}

const (
	deadLetterReason      = "DeadLetterReason"
	deadLetterDescription = "DeadLetterErrorDescription"
)

// outcomeOf maps a delivery state to what the service makes of it.
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

// properties are a settlement's properties to modify, without the dead-letter
// reason and description, which travel on their own.
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
