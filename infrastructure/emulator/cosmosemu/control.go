package cosmosemu

import (
	"net/http"
	"time"

	"feedbox/infrastructure/emulator/internal/hooks"
)

// OpAny stands for every operation in Control.
const OpAny Operation = ""

// Call is a request as hooks see it. Header and Body must not be changed or kept.
type Call struct {
	Operation Operation
	Database  string
	Container string
	ID        string // of the item
	Region    string // that was asked
	Method    string
	Path      string
	Header    http.Header
	Body      []byte
}

// Hook looks at a call that is authorised but not executed yet, and says what is
// to go wrong; nil lets it pass. It may be called concurrently, and may use the
// Server, to split a partition for example.
type Hook func(*Call) *Fault

// Loss says how a reply gets lost.
type Loss uint8

// The ways to lose a reply. The client cannot tell whether its request was
// executed; Fault.Execute decides.
const (
	NoLoss   Loss = iota
	Reset         // the connection is reset without a reply
	Truncate      // the reply breaks off in the middle of its body; without a body it is as Reset
	Drop          // there is no reply: the client waits until it gives up
)

// Fault is what goes wrong with one call. The zero value does nothing. The fields
// take effect in the order they are listed.
type Fault struct {
	// Delay is waited first.
	Delay time.Duration
	// Hold is waited for, after Delay, until it is closed.
	Hold <-chan struct{}
	// Execute executes the request even though what follows hides its outcome.
	Execute bool
	// Status is answered instead of the outcome; 0 executes and answers as usual.
	Status int
	// SubStatus, RetryAfter and Message go with Status.
	SubStatus  int
	RetryAfter time.Duration
	Message    string
	// Loss loses the reply.
	Loss Loss
}

// Throttled is the fault of a client that has used up its request units: 429.
func Throttled(retryAfter time.Duration) Fault {
	return Fault{Status: http.StatusTooManyRequests, SubStatus: 3200, RetryAfter: retryAfter, Message: "Request rate is large. More Request Units may be needed, so no changes were made."}
}

// RetryWith is the fault of a transient conflict in the service: 449.
func RetryWith() Fault { return Fault{Status: 449, Message: "Conflicting request, retry."} }

// TimedOut is 408.
func TimedOut() Fault {
	return Fault{Status: http.StatusRequestTimeout, Message: "The request timed out."}
}

// RangeGone is 410 with sub-status 1002: the client is to read the ranges again.
func RangeGone() Fault {
	return Fault{Status: http.StatusGone, SubStatus: subRangeGone, Message: "The partition key range is gone."}
}

// Failed is 500.
func Failed() Fault {
	return Fault{Status: http.StatusInternalServerError, Message: "The service failed."}
}

// Unavailable is 503.
func Unavailable() Fault {
	return Fault{Status: http.StatusServiceUnavailable, Message: "The service is unavailable."}
}

// LostReply executes the request and loses the reply.
func LostReply(loss Loss) Fault { return Fault{Execute: true, Loss: loss} }

// Always is a hook that gives every call the same fault.
func Always(f Fault) Hook { return hooks.Always[Call](f) }

// Times is a hook for the next n calls.
func Times(n int, f Fault) Hook { return hooks.Times[Call](n, f) }

// When passes on to hook the calls that match. An empty field of match matches anything;
// Header and Body are not compared.
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

// Control calls hook for every call of an operation, OpAny for all. Of several
// hooks, in the order they were added, the first that returns a fault decides.
// remove takes the hook away.
func (s *Server) Control(op Operation, hook Hook) (remove func()) {
	return s.hooks.Add(When(Call{Operation: op}, hook))
}

// faultOf asks the hooks; nil if nothing is to go wrong.
func (x *request) faultOf() *Fault {
	if x.srv.hooks.Empty() {
		return nil
	}
	return x.srv.hooks.Ask(&Call{
		Operation: x.route.op, Region: x.srv.options.Regions[x.region], Database: x.route.db, Container: x.route.coll, ID: x.route.id,
		Method: x.req.Method, Path: x.req.URL.Path, Header: x.header, Body: x.body,
	})
}
