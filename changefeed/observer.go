package changefeed

import (
	"reflect"
	"time"
)

// Observer receives the events of a processor, for logs, metrics, traces and tests. Every
// field may be nil. Hooks must be quick and must not block, because they are called on the
// processor's goroutines, several at once.
type Observer struct {
	LeaseAcquired     func(LeaseAcquired)
	LeaseReleased     func(LeaseReleased)
	LeaseLost         func(LeaseLost)
	LeaseError        func(LeaseError)
	CheckpointWritten func(CheckpointWritten)
	PageRead          func(PageRead)
	ReadFailed        func(ReadFailed)
	BatchHandled      func(BatchHandled)
	BatchFailed       func(BatchFailed)
	DocumentPoisoned  func(DocumentPoisoned)
	RangeStuck        func(RangeStuck)
	RangeRecovered    func(RangeRecovered)
	RangeSplit        func(RangeSplit)
	RangeUnread       func(RangeUnread)
	GapRepaired       func(GapRepaired)
	Recreated         func(Recreated)
	DuplicateHost     func(DuplicateHost)
	Balanced          func(Balanced)
}

// LeaseRef is one ownership of a lease.
type LeaseRef struct {
	Lease string // its id
	Range FeedRange
	Epoch int64 // rises by one with each change of ownership
	// History names the history of the container; positions of different histories must not
	// be compared. See Lease.History.
	History string
}

// LeaseAcquired reports that this host owns the lease from now on.
type LeaseAcquired struct {
	LeaseRef
	Continuation string
	From         string // the previous owner, empty if the lease had been released
	// LastRead is when the range was last read, by that reader's wall clock. If the lease does not
	// say so, it is the time of the lease's previous write. Zero if both are unknown.
	LastRead time.Time
}

// LeaseReleased reports that this host released the lease.
type LeaseReleased struct {
	LeaseRef
	To     string // the host it is handed to, empty if any
	Reason string
}

// LeaseLost reports that this host does not own the lease any longer and did not release
// it.
type LeaseLost struct {
	LeaseRef
	To  string // the owner found in the record, empty if unknown or none
	Err error
}

// Operations of a LeaseError that are checks of the processor's assumptions. The problems
// they find do not pass on their own; an operator has to act.
const (
	OpCheckFeed    = "check the feed"    // documents lie where their range says (Page.Doubt)
	OpCheckHistory = "check the history" // the service has not failed over since the last read (Page.Term)
	OpCheckTiling  = "check tiling"      // leases do not overlap
	OpCheckLeases  = "check leases"      // each lease has one record (Record.Doubt)
)

// LeaseError reports that an operation on the lease store failed, which is retried, or that
// a check failed. Lease is empty for operations on all leases.
type LeaseError struct {
	Lease string
	Op    string
	Err   error
}

// CheckpointWritten reports that the lease was stored. Renewals are reported too.
type CheckpointWritten struct {
	LeaseRef
	Continuation string
	LSN          int64
	Took         time.Duration
}

// PageRead reports that the feed replied.
type PageRead struct {
	LeaseRef
	Items         int
	Bytes         int
	CaughtUp      bool
	RequestCharge float64
	Took          time.Duration // decoding included
}

// ReadFailed reports that a read of the feed failed. It is retried after Pause.
type ReadFailed struct {
	LeaseRef
	Err   error
	Pause time.Duration
}

// BatchHandled reports that all items of a handler call are done.
type BatchHandled struct {
	LeaseRef
	Items   int
	Attempt int
	Took    time.Duration
}

// BatchFailed reports that a handler call failed.
type BatchFailed struct {
	LeaseRef
	Items   int
	Attempt int
	Took    time.Duration
	Err     error
}

// DocumentPoisoned reports that a document failed too often and Policy was applied.
type DocumentPoisoned struct {
	DeadLetter
	Policy PoisonPolicy
}

// RangeStuck reports that deliveries of the range have failed for Options.StuckAfter, or
// its reads with errors marked ErrPermanent.
type RangeStuck struct {
	LeaseRef
	Failures int
	Since    time.Time
	Err      error
}

// RangeRecovered reports that a failed range delivers again.
type RangeRecovered struct {
	LeaseRef
}

// RangeUnread reports that no reader of the range got a page it could use for one and a half
// Options.ReadTimeout, or that no host owned it for so long. It is repeated while that lasts. A
// paused range is not reported, and neither is one whose handlers are slower than the feed.
type RangeUnread struct {
	LeaseRef               // Lease is empty if there is none
	Owner    string        // this host, or empty if there is no owner
	Silent   bool          // reads do not even fail
	For      time.Duration // since the range was last read, or had an owner, as far as this host knows
	Err      error
}

// Recreated reports that the container was deleted and created again under its name. The
// processor continues with new leases, from the beginning.
type Recreated struct {
	From, To Source
}

// RangeSplit reports that a lease was replaced by others.
type RangeSplit struct {
	LeaseRef
	Owned    bool // this host owned the lease until now
	Children []FeedRange
}

// GapRepaired reports that a range had no lease and that this host created one.
type GapRepaired struct {
	Range FeedRange
	From  RangeToken
}

// DuplicateHost reports that another running process uses this host's name.
type DuplicateHost struct {
	Host        string
	Incarnation string // of the other process
}

// Balanced reports that this host listed all leases and computed its plan.
type Balanced struct {
	Hosts  int
	Leases int
	Owned  int // by this host
}

func notify[E any](hook func(E), event E) {
	if hook != nil {
		hook(event)
	}
}

// JoinObservers returns an observer that calls each of the given ones, in order. Nil
// observers are left out.
func JoinObservers(observers ...*Observer) *Observer {
	joined := &Observer{}
	for i := range reflect.TypeFor[Observer]().NumField() {
		var hooks []reflect.Value
		for _, o := range observers {
			if o != nil && !reflect.ValueOf(o).Elem().Field(i).IsNil() {
				hooks = append(hooks, reflect.ValueOf(o).Elem().Field(i))
			}
		}
		if len(hooks) > 0 {
			reflect.ValueOf(joined).Elem().Field(i).Set(callAll(hooks))
		}
	}
	return joined
}

// callAll returns a hook that calls several hooks of its type.
func callAll(hooks []reflect.Value) reflect.Value {
	if len(hooks) == 1 {
		return hooks[0]
	}
	return reflect.MakeFunc(hooks[0].Type(), func(event []reflect.Value) []reflect.Value {
		for _, hook := range hooks {
			hook.Call(event)
		}
		return nil
	})
}
