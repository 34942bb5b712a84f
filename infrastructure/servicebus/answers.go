package servicebus

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"

	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
)

// answers is a connection through which the publisher learns what the broker answered.
// The client does not tell:
//
//   - It takes each outcome of a delivery but rejected for accepted (go-amqp, Send).
//   - For a rejection whose condition it does not know it throws the connection away,
//     and tells of a lost connection (internal/errors.go, GetRecoveryKind).
//   - The refusal of a link looks as that of a message: inside a send the client may
//     open the link again.
//
// So a disposition that does not accept, and the detach of a link that was refused, are
// changed before the client reads them: what the broker said becomes the info of an
// error with a condition that the client hands on at once and as it is. It is the client
// that finds the delivery and its send, so no other send is hit, and none is missed.
//
// All else passes as it comes. Reads are the client's, one at a time.
type answers struct {
	net.Conn
	in      *bufio.Reader
	changed []byte          // in place of a frame; not yet the client's
	rest    int             // bytes still to come of a frame that passes
	refused map[linkID]bool // until the broker uses the handle again
}

// linkID is the broker's channel and handle of a link.
type linkID struct {
	channel [2]byte
	handle  string // encoded
}

// The error that carries an answer. The client returns this condition at once and leaves
// link and connection alone; a broker uses it for receivers only.
const carrier, carried = amqp.ErrCond("com.microsoft:session-cannot-be-locked"), "feedbox:answer"

// The descriptor of accepted, in its two forms.
var (
	accepted     = []byte{0, 0x53, codeAccepted}
	acceptedLong = []byte{0, 0x80, 0, 0, 0, 0, 0, 0, 0, codeAccepted}
)

var errFrame = errors.New("the broker sent a frame that cannot be read")

func watch(conn net.Conn) net.Conn {
	return &answers{Conn: conn, in: bufio.NewReaderSize(conn, frameMax), refused: map[linkID]bool{}}
}

// Read implements net.Conn. It returns of one frame at a time what has come.
func (a *answers) Read(b []byte) (n int, err error) {
	if len(a.changed) == 0 && a.rest == 0 {
		if err := a.next(); err != nil {
			return 0, err
		}
	}
	if len(a.changed) > 0 {
		n = copy(b, a.changed)
		a.changed = a.changed[n:]
		return n, nil
	}
	n, err = a.in.Read(b[:min(len(b), a.rest)])
	a.rest -= n
	return n, err
}

// next looks at the next frame: it passes, or something else takes its place.
func (a *answers) next() error {
	frame, err := a.in.Peek(frameHeader)
	if err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(frame))
	switch {
	case string(frame[:4]) == "AMQP": // a protocol header
		size = frameHeader
	case size < frameHeader:
		return errFrame
	case size >= frameKind:
		if frame, err = a.in.Peek(frameKind); err != nil {
			return err
		}
		if kind := frame[frameKind-1]; kind != codeAttach && kind != codeDisposition && kind != codeDetach {
			break
		}
		if size > frameMax {
			return errFrame
		}
		if frame, err = a.in.Peek(size); err != nil {
			return err
		}
		if a.changed, err = a.judge(frame); err != nil {
			return err
		}
		if a.changed != nil {
			_, err = a.in.Discard(size)
			return err
		}
	}
	a.rest = size
	return nil
}

// judge returns what the client gets in place of a frame, nil if it passes.
func (a *answers) judge(frame []byte) ([]byte, error) {
	switch f := composite(frame[frameHeader:]); frame[frameHeader+2] {
	case codeAttach:
		a.attached(frame, f)
	case codeDetach:
		return a.detached(frame, f), nil
	case codeDisposition:
		return settled(frame, f)
	}
	return nil, nil
}

// settled changes a disposition that tells anything but accepted of deliveries that were
// sent to the broker.
func settled(frame []byte, f fields) ([]byte, error) {
	role, first, last, done, state := f.next(), f.next(), f.next(), f.next(), f.next()
	switch {
	case f.bad, len(first)+len(last)+len(done) > 5+5+2:
		return nil, errFrame
	case role[0] == typeFalse, role[0] == 0x56 && role[1] == 0: // of the broker's own deliveries
		return nil, nil
	case bytes.HasPrefix(state, accepted), bytes.HasPrefix(state, acceptedLong):
		return nil, nil
	}
	rejected := appendList(nil, codeRejected, carry(state))
	return inPlaceOf(frame, codeDisposition, role, first, last, done, rejected), nil
}

// attached notes a link that the broker refused: it has no target then, and its detach
// follows.
func (a *answers) attached(frame []byte, f fields) {
	_, handle, role, _, _, _, target := f.next(), f.next(), f.next(), f.next(), f.next(), f.next(), f.next()
	receives := role[0] == typeTrue || role[0] == 0x56 && role[1] == 1
	if id := idOf(frame, handle); receives && target[0] == typeNull && !f.bad {
		a.refused[id] = true
	} else {
		delete(a.refused, id)
	}
}

// detached changes the detach of a link that was refused for a reason that would be taken
// for a message's. The client throws the connection away for most of them.
func (a *answers) detached(frame []byte, f fields) []byte {
	handle, closed, reason := f.next(), f.next(), f.next()
	if f.bad || !a.refused[idOf(frame, handle)] || byCondition[condition(reason)].class != relay.Refused {
		return nil
	}
	return inPlaceOf(frame, codeDetach, handle, closed, carry(reason))
}

func idOf(frame, handle []byte) linkID { return linkID{[2]byte(frame[6:8]), string(handle)} }

// carry returns an error that carries an encoded state or error.
func carry(answer []byte) []byte {
	return appendList(nil, codeError, symbol(string(carrier)), null, appendCompound(nil, 0xd1, symbol(carried), answer))
}

func symbol(s string) []byte { return append([]byte{0xa3, byte(len(s))}, s...) }

// inPlaceOf returns a frame on the channel of another.
func inPlaceOf(like []byte, code byte, fields ...[]byte) []byte {
	b := appendList(append([]byte(nil), like[:frameHeader]...), code, fields...)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

// notAcceptedError is an outcome of a delivery: the error of a rejection, or one whose
// condition is the name of the outcome.
type notAcceptedError struct{ outcome amqp.Error }

// Error implements error.
func (e *notAcceptedError) Error() string {
	text := "the broker did not accept the message: " + string(e.outcome.Condition)
	if e.outcome.Description != "" {
		text += ": " + e.outcome.Description
	}
	return text
}

// said returns what the broker said if err carries that: a *notAcceptedError, or the
// *amqp.Error of a link that was refused.
func said(err error) error {
	e, ok := errors.AsType[*amqp.Error](err)
	if !ok || e.Condition != carrier {
		return err
	}
	outcome := amqp.Error{Condition: "no outcome"}
	switch answer := e.Info[carried].(type) {
	case *amqp.Error:
		return answer
	case *amqp.StateRejected:
		outcome.Condition = "rejected"
		if answer.Error != nil {
			outcome = *answer.Error
		}
	case *amqp.StateReleased:
		outcome.Condition = "released"
	case *amqp.StateModified:
		outcome.Condition = "modified"
	}
	return &notAcceptedError{outcome}
}
