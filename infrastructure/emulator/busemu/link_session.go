package busemu

import (
	"fmt"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

const (
	sessionFilterName = "com.microsoft:session-filter"
	timeoutProperty   = "com.microsoft:timeout"
	sessionFilterCode = uint64(0x137000000C)
)

// wantedSession is the session that a filter requests.
type wantedSession struct {
	session   *string // nil: the next available
	described bool
	timeout   time.Duration
}

// sessionFilter reads the filters of a receiver's source. The Go SDK describes the filter's
// value, others do not. Other filters are refused, because a filter that is not applied would
// deliver unwanted messages.
func sessionFilter(p *amqp.Attach) (w wantedSession, wanted bool, err error) {
	for _, e := range p.Source.Filter {
		name, _ := amqp.Text(e.Key)
		if name != sessionFilterName {
			return w, false, &broker.Error{Condition: broker.NotImplemented, Description: fmt.Sprintf("The source filter '%s' is not supported by this emulator.", name)}
		}
		wanted = true
		v := e.Value
		if d, ok := v.(amqp.Described); ok {
			v, w.described = d.Value, true
		}
		switch id := v.(type) {
		case nil:
		case string:
			w.session = &id
		default:
			return w, false, &amqp.Error{Condition: condInvalidField, Description: fmt.Sprintf("session filter of type %T", v)}
		}
	}
	if v, ok := p.Properties.Get(timeoutProperty); ok {
		if ms, ok := amqp.Integer(v); ok && ms > 0 {
			w.timeout = time.Duration(ms) * time.Millisecond
		}
	}
	return w, wanted, nil
}

// grantedFilter is the filter of the reply, in the peer's form: go-amqp reads only described
// values, the others expect a plain string.
func grantedFilter(id string, plain bool) amqp.Map {
	var v any = id
	if !plain {
		v = amqp.Described{Descriptor: sessionFilterCode, Value: id}
	}
	return amqp.Map{{Key: amqp.Symbol(sessionFilterName), Value: v}}
}

// acceptSession waits for a session. The attach is answered when the session is granted.
func (l *outgoingLink) acceptSession(a broker.AcceptOptions, o broker.ReceiverOptions) {
	c := l.s.c
	l.cancel = c.ns.broker.AcceptSession(l.node.path, a, o, func(r *broker.Receiver, err error) {
		c.post(event{fn: func() { l.sessionOpened(r, err) }})
	})
}

func (l *outgoingLink) sessionOpened(r *broker.Receiver, err error) {
	l.cancel = nil
	if l.over() {
		if r != nil {
			r.Close()
		}
		return
	}
	if err != nil {
		l.refuse(l.attach, err)
		return
	}
	l.source = r
	l.answerAttach()
	if l.drain {
		l.continueDrain()
	}
}

// ticks converts a time to .NET's count of 100 ns since the year 1.
func ticks(t time.Time) int64 {
	const epoch = 621355968000000000
	return t.Unix()*1e7 + int64(t.Nanosecond()/100) + epoch
}
