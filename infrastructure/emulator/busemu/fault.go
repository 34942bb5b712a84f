package busemu

import (
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/internal/hooks"
)

// Operation is a kind of request by a client.
type Operation string

// OpAny selects every operation in Control.
const OpAny Operation = ""

// The operations that reach a Hook.
const (
	OpPutToken   Operation = "put-token"  // $cbs
	OpAttach     Operation = "attach"     // of a sender or receiver on an entity
	OpSend       Operation = "send"       // one transfer: a message or a batch
	OpDeliver    Operation = "deliver"    // one message before it is sent to a receiver
	OpSettle     Operation = "settle"     // one disposition on a receiver's link
	OpManagement Operation = "management" // a request to $management
)

// Call describes an operation to a hook, which must not change it.
type Call struct {
	Operation Operation
	Entity    string // path, as the client wrote it
	Link      string // name; empty for put-token
	Receiver  bool   // the link is a receiver of the client
	Session   string // of the receiver's link; empty if it has none
	Name      string // of a management operation, without its com.microsoft: prefix
	Messages  int    // of a send
	// Sessions are the distinct session ids of a send's messages, in order.
	Sessions []string
}

// Error is a refusal: a condition, by which the client's SDK decides what to do next, and a
// text.
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

// Hook returns the fault for a call; nil serves it normally. It may be called concurrently. It
// runs on the connection's loop and must not block; use Fault.Hold and Fault.Delay to wait.
type Hook func(*Call) *Fault

// Loss is a way to lose an answer.
type Loss uint8

// The ways to lose an answer. The client cannot know whether its operation was executed;
// Fault.Execute decides.
const (
	NoLoss Loss = iota
	Reset       // the connection is cut without a Close
	Drop        // no answer is sent: the client waits until its own timeout. Not for deliver
)

// Fault describes what fails in one call. The zero value does nothing. The fields take effect
// in order, but Loss hides Err, Outcome and Detach.
type Fault struct {
	// Delay comes first. It also delays the later operations of the link.
	Delay time.Duration
	// Hold blocks the operation, after Delay, until it is closed.
	Hold <-chan struct{}
	// Execute executes the operation even though Detach or Loss hides its outcome. Not for
	// attach and deliver.
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

// Always returns a hook with the same fault for every call.
func Always(f Fault) Hook { return hooks.Always[Call](f) }

// Times returns a hook for the next n calls.
func Times(n int, f Fault) Hook { return hooks.Times[Call](n, f) }

// When returns a hook that passes matching calls to hook. An empty field of match matches
// anything; Messages, Sessions and Receiver are not compared.
func When(match Call, hook Hook) Hook { return hooks.If(match.matches, hook) }

func (m *Call) matches(c *Call) bool {
	return (m.Operation == OpAny || m.Operation == c.Operation) &&
		(m.Entity == "" || samePath(m.Entity, c.Entity)) &&
		(m.Link == "" || m.Link == c.Link) &&
		(m.Session == "" || m.Session == c.Session) &&
		(m.Name == "" || m.Name == c.Name)
}
