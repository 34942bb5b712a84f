package busemu

import (
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/internal/hooks"
)

// Operation is what a client asks for on the wire.
type Operation string

// OpAny stands for every operation in Control.
const OpAny Operation = ""

// The operations a Hook can see.
const (
	OpPutToken   Operation = "put-token"  // $cbs
	OpAttach     Operation = "attach"     // of a sender or receiver on an entity
	OpSend       Operation = "send"       // one transfer: a message or a batch
	OpDeliver    Operation = "deliver"    // one message about to be sent to a receiver
	OpSettle     Operation = "settle"     // one disposition on a receiver's link
	OpManagement Operation = "management" // a request to $management
)

// Call is an operation about to be served, as hooks see it. It must not be changed.
type Call struct {
	Operation Operation
	Entity    string // path, as the client wrote it
	Link      string // name; empty for put-token
	Receiver  bool   // the link is a receiver of the client
	Session   string // of the receiver's link, if it has one
	Name      string // of a management operation, without its com.microsoft: prefix
	Messages  int    // of a send
	// Sessions are the session ids of a send's messages, each once, in their order.
	Sessions []string
}

// Error is a refusal: a condition that decides what the client's SDK does next,
// and a text.
type Error struct {
	Condition   Condition
	Description string
}

// Condition is an AMQP error condition, such as "amqp:not-found". What the methods of
// Server return can be compared with one by errors.Is.
//
//nolint:errname // it is the name in AMQP
type Condition = broker.Condition

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

// Hook looks at a call that is about to be served and says what is to go wrong; nil lets
// it pass. It may be called concurrently. It runs on the connection's loop and must not
// block; Fault.Hold and Fault.Delay wait.
type Hook func(*Call) *Fault

// Loss says how an answer gets lost.
type Loss uint8

// The ways to lose an answer. The client cannot tell whether its operation was carried
// out; Fault.Execute decides.
const (
	NoLoss Loss = iota
	Reset       // the connection is cut without a Close
	Drop        // there is no answer: the client waits until it gives up. Not for deliver
)

// Fault is what goes wrong with one call. The zero value does nothing. The fields
// take effect in the order they are listed, but that Loss hides Err, Outcome and Detach.
type Fault struct {
	// Delay is waited first. It holds back the operations behind it on the link too.
	Delay time.Duration
	// Hold is waited for, after Delay, until it is closed.
	Hold <-chan struct{}
	// Execute carries the operation out even though Detach or Loss hides its outcome. Not
	// for attach and deliver.
	Execute bool
	// Err refuses the operation.
	Err *Error
	// Outcome settles a send without storing its messages. Only for send.
	Outcome Outcome
	// Detach detaches the link with this error. Only for send, settle and deliver.
	Detach *Error
	// Loss loses the answer.
	Loss Loss
}

// Always is a hook that gives every call the same fault.
func Always(f Fault) Hook { return hooks.Always[Call](f) }

// Times is a hook for the next n calls.
func Times(n int, f Fault) Hook { return hooks.Times[Call](n, f) }

// When passes on to hook the calls that match. An empty field of match matches anything;
// Messages, Sessions and Receiver are not compared.
func When(match Call, hook Hook) Hook { return hooks.If(match.matches, hook) }

func (m *Call) matches(c *Call) bool {
	return (m.Operation == OpAny || m.Operation == c.Operation) &&
		(m.Entity == "" || samePath(m.Entity, c.Entity)) &&
		(m.Link == "" || m.Link == c.Link) &&
		(m.Session == "" || m.Session == c.Session) &&
		(m.Name == "" || m.Name == c.Name)
}
