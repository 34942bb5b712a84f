package busemu

import (
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// Operation is what a client asks for on the wire.
type Operation string

// The operations a Control can see.
const (
	OpPutToken   Operation = "put-token"  // $cbs
	OpAttach     Operation = "attach"     // of a sender or receiver on an entity
	OpSend       Operation = "send"       // one transfer: a message or a batch
	OpDeliver    Operation = "deliver"    // one message about to be sent to a receiver
	OpSettle     Operation = "settle"     // one disposition on a receiver's link
	OpManagement Operation = "management" // a request to $management
)

// Call is an operation about to be served.
type Call struct {
	Operation Operation
	Entity    string // path, as the client wrote it
	Link      string // name; empty for put-token
	Receiver  bool   // the link is a receiver of the client
	Session   string // of the receiver's link, if it has one
	Name      string // of a management operation, without its com.microsoft: prefix
	Messages  int    // of a send
}

// Error is a refusal: a condition that decides what the client's SDK does next,
// and a text.
type Error = broker.Error

// Conditions for faults, and what the SDK makes of them (azservicebus
// internal/errors.go).
//
//nolint:errname // conditions of AMQP by their names there; they are values of Error.Condition
const (
	ServerBusy         = broker.ServerBusy            // retried on the same link
	Timeout            = broker.Timeout               // retried on the same link
	DetachForced       = broker.DetachForced          // a new link, then retried
	InternalError      = broker.InternalError         // a new connection, then retried
	QuotaExceeded      = broker.ResourceLimitExceeded // returned at once
	EntityDisabled     = broker.EntityDisabled        // returned at once
	MessageLockLost    = broker.MessageLockLost       // returned at once
	NotFound           = broker.NotFound              // returned at once
	UnauthorizedAccess = broker.Condition(condUnauthorized)
)

// Fault is what a Control does to an operation. Delay comes first. Then, with
// DropReply, the operation is carried out and what follows from it is kept from
// the client; with Err it is refused and not carried out. Detach and Disconnect
// happen instead of the operation, or with DropReply after it was carried out.
type Fault struct {
	// Delay holds the operation, and those behind it on its link, back.
	Delay time.Duration
	// Err refuses the operation.
	Err *Error
	// DropReply carries the operation out and never answers: an accepted message
	// whose disposition is lost. Not for attach and deliver.
	DropReply bool
	// Detach detaches the link with this error. Not for put-token and attach.
	Detach *Error
	// Disconnect cuts the connection without a Close.
	Disconnect bool
}

// Control decides about a call: nil lets it be. It runs on the connection's loop
// and must not block.
type Control func(Call) *Fault

// Control installs c until it is removed. The newest Control that returns a fault
// decides. Safe for concurrent use, also while operations are served.
func (s *Server) Control(c Control) (remove func()) {
	entry := &c
	s.mu.Lock()
	defer s.mu.Unlock()
	s.controls = append(s.controls, entry)
	s.publishControls()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, e := range s.controls {
			if e == entry {
				s.controls = append(s.controls[:i:i], s.controls[i+1:]...)
				break
			}
		}
		s.publishControls()
	}
}

// Fail makes the next n calls that match fail. A zero field of match matches
// anything; Messages and Receiver are not compared.
func (s *Server) Fail(n int, match Call, f Fault) (remove func()) {
	left := make(chan struct{}, n) // tokens, taken by any connection's loop
	for range n {
		left <- struct{}{}
	}
	return s.Control(func(c Call) *Fault {
		if !match.matches(c) {
			return nil
		}
		select {
		case <-left:
			return &f
		default:
			return nil
		}
	})
}

func (m Call) matches(c Call) bool {
	return (m.Operation == "" || m.Operation == c.Operation) &&
		(m.Entity == "" || samePath(m.Entity, c.Entity)) &&
		(m.Link == "" || m.Link == c.Link) &&
		(m.Session == "" || m.Session == c.Session) &&
		(m.Name == "" || m.Name == c.Name)
}

// publishControls makes the list readable without a lock; s.mu is held.
func (s *Server) publishControls() {
	if len(s.controls) == 0 {
		s.published.Store(nil)
		return
	}
	list := append([]*Control(nil), s.controls...)
	s.published.Store(&list)
}

// fault asks the controls about a call.
func (s *Server) fault(call func() Call) *Fault {
	list := s.published.Load()
	if list == nil {
		return nil
	}
	c := call()
	for i := len(*list) - 1; i >= 0; i-- {
		if f := (*(*list)[i])(c); f != nil {
			return f
		}
	}
	return nil
}

// work is an operation of a link, in the ways a fault can have it.
type work struct {
	link  *linkBase
	call  func() Call
	serve func()            // carry it out and answer
	mute  func(done func()) // carry it out, do not answer, then call done
	fail  func(e *Error)    // refuse it
	end   func(e *Error)    // detach the link
	// unordered work is not held back by a delay before it on the same link.
	unordered bool
}

// undisturbed reports that an operation of a link can be served right away. It
// spares the path of a message the making of a work.
func (c *conn) undisturbed(b *linkBase) bool { return !b.stalled && c.srv.published.Load() == nil }

// perform serves an operation, or does what a fault says. It keeps the order of
// a link's operations when one of them is delayed.
func (c *conn) perform(w work) {
	if w.link.stalled && !w.unordered {
		w.link.behind = append(w.link.behind, w)
		return
	}
	f := c.srv.fault(w.call)
	if f == nil {
		w.serve()
		return
	}
	if f.Delay <= 0 {
		c.suffer(w, f)
		return
	}
	if !w.unordered {
		w.link.stalled = true
	}
	time.AfterFunc(f.Delay, func() {
		c.post(event{fn: func() {
			if !w.unordered {
				w.link.stalled = false
			}
			if !w.link.over() {
				c.suffer(w, f)
			}
			c.catchUp(w.link)
		}})
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

// suffer does to an operation what a fault says, its delay apart.
func (c *conn) suffer(w work, f *Fault) {
	after := func() {
		switch {
		case f.Disconnect:
			c.hangUp()
		case f.Detach != nil && w.end != nil:
			w.end(f.Detach)
		}
	}
	switch {
	case f.DropReply && w.mute != nil:
		w.mute(after)
	case f.Err != nil:
		w.fail(f.Err)
	case f.Disconnect, f.Detach != nil && w.end != nil:
		after()
	default:
		w.serve()
	}
}

// letGo asks the controls about the next message of a link and reports whether
// it may be sent now.
func (l *outgoingLink) letGo() bool {
	c := l.s.c
	if l.let || c.srv.published.Load() == nil {
		l.let = false
		return true
	}
	f := c.srv.fault(func() Call { return l.call(OpDeliver) })
	switch {
	case f == nil:
		return true
	case f.Delay > 0:
		l.held = true
		rest := *f
		rest.Delay = 0
		time.AfterFunc(f.Delay, func() {
			c.post(event{fn: func() {
				l.held = false
				if !l.over() && l.mayGo(&rest) {
					l.let = true
					l.enqueue()
				}
			}})
		})
		return false
	default:
		return l.mayGo(f)
	}
}

// mayGo does what a fault says to a delivery, its delay apart.
func (l *outgoingLink) mayGo(f *Fault) bool {
	e := f.Detach
	if e == nil {
		e = f.Err
	}
	switch {
	case f.Disconnect:
		l.s.c.hangUp()
	case e != nil:
		l.held = true // until the detach, which must not come in the middle of a turn
		l.s.c.post(event{fn: func() { l.cut(wire(e)) }})
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
