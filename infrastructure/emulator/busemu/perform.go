package busemu

import (
	"context"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// work is an operation of a link, in the ways a fault can have it.
type work struct {
	link   *linkBase
	call   func() *Call
	serve  func()            // carry it out and answer
	silent func(done func()) // carry it out, do not answer, then call done; nil: cannot be
	skip   func()            // neither carry it out nor answer; nil: nothing is to be done for that
	refuse func(err error)   // answer with an error
	settle func(o Outcome)   // answer with this outcome; nil unless it is a send
	detach func(e *Error)    // detach the link; nil: cannot be
	// unordered work is not held back by a delay before it on the same link.
	unordered bool
}

// undisturbed reports that an operation of a link can be served right away. It
// spares the path of a message the making of a work.
func (c *conn) undisturbed(b *linkBase) bool { return !b.stalled && c.ns.hooks.Empty() }

// perform serves an operation, or does what a fault says. It keeps the order of
// a link's operations when one of them is delayed.
func (c *conn) perform(w work) {
	if w.link.stalled && !w.unordered {
		w.link.behind = append(w.link.behind, w)
		return
	}
	var f *Fault
	if !c.ns.hooks.Empty() {
		f = c.ns.hooks.Ask(w.call())
	}
	if f == nil {
		w.serve()
		return
	}
	if !f.waits() {
		c.performWith(w, f)
		return
	}
	if !w.unordered {
		w.link.stalled = true
	}
	c.afterWait(f, func() {
		if !w.unordered {
			w.link.stalled = false
		}
		if !w.link.over() {
			c.performWith(w, f)
		}
		c.catchUp(w.link)
	})
}

// waits reports that the operation is not to be served yet.
func (f *Fault) waits() bool { return f.Delay > 0 || f.Hold != nil }

// afterWait runs do on the loop when a fault's Delay and Hold are over.
func (c *conn) afterWait(f *Fault, do func()) {
	time.AfterFunc(f.Delay, func() {
		if f.Hold == nil {
			c.post(event{fn: do})
			return
		}
		c.ns.background(func(ctx context.Context) {
			select {
			case <-f.Hold:
				c.post(event{fn: do})
			case <-ctx.Done():
			}
		})
	})
}

// catchUp performs what waited behind a delayed operation.
func (c *conn) catchUp(b *linkBase) {
	for !b.stalled && len(b.behind) > 0 {
		next := b.behind[0]
		b.behind = b.behind[1:]
		if !b.over() {
			c.perform(next)
		}
	}
}

// performWith does to an operation what a fault says, its wait apart.
func (c *conn) performWith(w work, f *Fault) {
	detach := f.Detach != nil && w.detach != nil && f.Loss == NoLoss
	hide := func() {
		switch {
		case f.Loss == Reset:
			c.hangUp()
		case detach && !w.link.over():
			w.detach(f.Detach)
		}
	}
	switch {
	case f.Execute && (detach || f.Loss != NoLoss) && w.silent != nil:
		w.silent(hide)
	case f.Loss == NoLoss && f.Err != nil:
		w.refuse((*broker.Error)(f.Err))
	case f.Loss == NoLoss && f.Outcome != 0 && w.settle != nil:
		w.settle(f.Outcome)
	case f.Loss != NoLoss || detach:
		if w.skip != nil {
			w.skip()
		}
		hide()
	default:
		w.serve()
	}
}

// mayDeliver asks the hooks about the next message of a link and reports whether
// it may be sent now.
func (l *outgoingLink) mayDeliver() bool {
	c := l.s.c
	if l.allowed || c.ns.hooks.Empty() {
		l.allowed = false
		return true
	}
	f := c.ns.hooks.Ask(l.call(OpDeliver))
	switch {
	case f == nil:
		return true
	case f.waits():
		l.held = true
		c.afterWait(f, func() {
			l.held = false
			if !l.over() && l.mayDeliverWith(f) {
				l.allowed = true
				l.enqueue()
			}
		})
		return false
	default:
		return l.mayDeliverWith(f)
	}
}

// mayDeliverWith does what a fault says to a delivery, its wait apart.
func (l *outgoingLink) mayDeliverWith(f *Fault) bool {
	e := f.Detach
	if e == nil {
		e = f.Err
	}
	switch {
	case f.Loss == Reset:
		l.s.c.hangUp()
	case e != nil:
		l.held = true // until the detach, which must not come in the middle of a turn
		l.s.c.post(event{fn: func() { l.detach(wire(e)) }})
	default:
		return true
	}
	return false
}

// hangUp ends the connection as a broken network does.
func (c *conn) hangUp() {
	c.closeSent, c.done = true, true
	c.out = c.out[:0]
	_ = c.nc.Close()
}

// wire is the AMQP form of a fault's error.
func wire(e *Error) *amqp.Error {
	return &amqp.Error{Condition: amqp.Symbol(e.Condition), Description: e.Description}
}
