package busemu

import (
	"context"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// work is an operation of a link with its ways to fail.
type work struct {
	link   *linkBase
	call   func() *Call
	serve  func()            // execute it and answer
	silent func(done func()) // execute it without an answer, then call done; nil: not possible
	skip   func()            // neither execute it nor answer; nil: needs no action
	refuse func(err error)   // answer with an error
	settle func(o Outcome)   // answer with this outcome; nil unless it is a send
	detach func(e *Error)    // detach the link; nil: not possible
	// unordered work is not delayed by an earlier operation of the link.
	unordered bool
}

// undisturbed reports whether an operation can be served at once. The check avoids making a
// work for every message.
func (c *conn) undisturbed(b *linkBase) bool { return !b.stalled && c.ns.hooks.Empty() }

// perform serves an operation, with the faults of hooks. It keeps the order of a link's
// operations when one of them is delayed.
func (c *conn) perform(w work) {
	if w.link.stalled && !w.unordered {
		w.link.delayed = append(w.link.delayed, w)
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

// waits reports whether the operation is delayed.
func (f *Fault) waits() bool { return f.Delay > 0 || f.Hold != nil }

// afterWait runs do on the loop after a fault's Delay and Hold.
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

// catchUp performs the operations that a delayed one held back.
func (c *conn) catchUp(b *linkBase) {
	for !b.stalled && len(b.delayed) > 0 {
		next := b.delayed[0]
		b.delayed = b.delayed[1:]
		if !b.over() {
			c.perform(next)
		}
	}
}

// performWith applies a fault to an operation, except for its delay.
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

// mayDeliver asks the hooks about a link's next message and reports whether it may be sent
// now.
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

// mayDeliverWith applies a fault to a delivery, except for its delay.
func (l *outgoingLink) mayDeliverWith(f *Fault) bool {
	e := f.Detach
	if e == nil {
		e = f.Err
	}
	switch {
	case f.Loss == Reset:
		l.s.c.hangUp()
	case e != nil:
		l.held = true // until the detach, which must not interrupt a turn
		l.s.c.post(event{fn: func() { l.detach(wire(e)) }})
	default:
		return true
	}
	return false
}

// hangUp ends the connection like a broken network.
func (c *conn) hangUp() {
	c.closeSent, c.done = true, true
	c.out = c.out[:0]
	_ = c.nc.Close()
}

// wire returns the AMQP form of a fault's error.
func wire(e *Error) *amqp.Error {
	return &amqp.Error{Condition: amqp.Symbol(e.Condition), Description: e.Description}
}
