package cosmosemu

import (
	"net/http"
	"time"

	"feedbox/infrastructure/emulator/internal/hooks"
)

// OpAny matches every operation in Control.
const OpAny Operation = ""

// Call is the part of a request that hooks see. Hooks must not change Header and Body or
// keep them after they return.
type Call struct {
	Operation Operation
	Database  string
	Container string
	ID        string // of the item
	Region    string // the region that was called
	Method    string
	Path      string
	Header    http.Header
	Body      []byte
}

// Hook receives a call that is authorised but not executed yet, and returns its fault;
// nil lets the call pass. It may be called concurrently, and it may use the Server, for
// example to split a partition.
type Hook func(*Call) *Fault

// Loss is a way in which a reply gets lost.
type Loss uint8

// The ways to lose a reply. The client cannot see whether its request was executed;
// Fault.Execute decides that.
const (
	NoLoss   Loss = iota
	Reset         // the connection is reset without a reply
	Truncate      // the reply ends in the middle of its body; without a body it is the same as Reset
	Drop          // no reply is sent: the client waits until its timeout
)

// Fault is a failure of one call. The zero value does nothing. The fields take effect in
// the order they are listed.
type Fault struct {
	// Delay is the time to wait first.
	Delay time.Duration
	// Hold, if set, holds the call after Delay until the channel is closed.
	Hold <-chan struct{}
	// Execute executes the request although the fields below hide its outcome.
	Execute bool
	// Status replaces the outcome of the request; 0 executes and answers as usual.
	Status int
	// SubStatus, RetryAfter and Message are sent along with Status.
	SubStatus  int
	RetryAfter time.Duration
	Message    string
	// Loss is the way in which the reply gets lost.
	Loss Loss
}

// Throttled is a throttled request: 429.
func Throttled(retryAfter time.Duration) Fault {
	return Fault{Status: http.StatusTooManyRequests, SubStatus: 3200, RetryAfter: retryAfter, Message: "Request rate is large. More Request Units may be needed, so no changes were made."}
}

// RetryWith is a transient conflict in the service: 449.
func RetryWith() Fault { return Fault{Status: 449, Message: "Conflicting request, retry."} }

// TimedOut is a timeout of the service: 408.
func TimedOut() Fault {
	return Fault{Status: http.StatusRequestTimeout, Message: "The request timed out."}
}

// RangeGone is 410 with sub-status 1002: the client must read the ranges again.
func RangeGone() Fault {
	return Fault{Status: http.StatusGone, SubStatus: subRangeGone, Message: "The partition key range is gone."}
}

// Failed is an internal error of the service: 500.
func Failed() Fault {
	return Fault{Status: http.StatusInternalServerError, Message: "The service failed."}
}

// Unavailable is an unavailable service: 503.
func Unavailable() Fault {
	return Fault{Status: http.StatusServiceUnavailable, Message: "The service is unavailable."}
}

// LostReply executes the request and loses the reply.
func LostReply(loss Loss) Fault { return Fault{Execute: true, Loss: loss} }

// Always returns a hook that gives every call the same fault.
func Always(f Fault) Hook { return hooks.Always[Call](f) }

// Times returns a hook that gives the next n calls the same fault.
func Times(n int, f Fault) Hook { return hooks.Times[Call](n, f) }

// When returns a hook that passes matching calls on to hook. An empty field of match
// matches anything; Header and Body are not compared.
func When(match Call, hook Hook) Hook { return hooks.If(match.matches, hook) }

func (c *Call) matches(other *Call) bool {
	return (c.Operation == OpAny || c.Operation == other.Operation) &&
		(c.Database == "" || c.Database == other.Database) &&
		(c.Container == "" || c.Container == other.Container) &&
		(c.ID == "" || c.ID == other.ID) &&
		(c.Region == "" || c.Region == other.Region) &&
		(c.Method == "" || c.Method == other.Method) &&
		(c.Path == "" || c.Path == other.Path)
}
