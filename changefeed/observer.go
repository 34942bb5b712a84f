package changefeed

import (
	"reflect"
	"time"
)

// Observer is told what happens: for logs, metrics, traces and tests. Every
// field may be nil. Hooks are called on the processor's goroutines, several at
// once; they must be quick and must not block.
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
	GapRepaired       func(GapRepaired)
	DuplicateHost     func(DuplicateHost)
	Balanced          func(Balanced)
}

// LeaseRef is one ownership of a lease.
type LeaseRef struct {
	Lease string // its id
	Range FeedRange
	Epoch int64 // rises by one with each change of ownership
}

// LeaseAcquired says that this host owns the lease from now on.
type LeaseAcquired struct {
	LeaseRef
	Continuation string
	From         string // the owner before, empty if it had been released
	// Written is when the lease was last written before, by that writer's wall clock;
	// for how long nobody may have read the range. Zero if it is new.
	Written time.Time
}

// LeaseReleased says that this host gave the lease up by itself.
type LeaseReleased struct {
	LeaseRef
	To     string // the host it is meant for, empty if any
	Reason string
}

// LeaseLost says that this host no longer owns the lease and did not give it up.
type LeaseLost struct {
	LeaseRef
	To  string // the owner found in the record, empty if it is not known or nobody's
	Err error
}

// Operations of a LeaseError that are checks of what delivery rests on. What they find
// does not pass by itself: somebody has to act.
const (
	OpCheckFeed   = "check the feed" // documents lie where their range says (Page.Doubt)
	OpCheckTiling = "check tiling"   // leases do not overlap
)

// LeaseError says that an operation on the lease store failed, which is tried again,
// or that a check found something wrong. Lease is empty for operations on all leases.
type LeaseError struct {
	Lease string
	Op    string
	Err   error
}

// CheckpointWritten says that the lease was stored. Renewals are reported too.
type CheckpointWritten struct {
	LeaseRef
	Continuation string
	LSN          int64
	Took         time.Duration
}

// PageRead says that the feed replied.
type PageRead struct {
	LeaseRef
	Items         int
	Bytes         int
	CaughtUp      bool
	RequestCharge float64
	Took          time.Duration // decoding included
}

// ReadFailed says that the feed could not be read; it is tried again after Pause.
type ReadFailed struct {
	LeaseRef
	Err   error
	Pause time.Duration
}

// BatchHandled says that a handler call returned nil.
type BatchHandled struct {
	LeaseRef
	Items   int
	Attempt int
	Took    time.Duration
}

// BatchFailed says that a handler call failed.
type BatchFailed struct {
	LeaseRef
	Items   int
	Attempt int
	Took    time.Duration
	Err     error
}

// DocumentPoisoned says that a document failed too often and Policy was applied.
type DocumentPoisoned struct {
	DeadLetter
	Policy PoisonPolicy
}

// RangeStuck says that deliveries of the range have failed for Options.StuckAfter, or
// its reads with errors marked ErrPermanent.
type RangeStuck struct {
	LeaseRef
	Failures int
	Since    time.Time
	Err      error
}

// RangeRecovered says that a range that failed delivers again.
type RangeRecovered struct {
	LeaseRef
}

// RangeSplit says that a lease was replaced by others.
type RangeSplit struct {
	LeaseRef
	Children []FeedRange
}

// GapRepaired says that no lease covered a range; one was created.
type GapRepaired struct {
	Range FeedRange
	From  RangeToken
}

// DuplicateHost says that another running process uses this host's name.
type DuplicateHost struct {
	Host        string
	Incarnation string // the other's
}

// Balanced says that this host looked at all leases.
type Balanced struct {
	Hosts  int
	Leases int
	Owned  int // by this host
}

func tell[E any](hook func(E), event E) {
	if hook != nil {
		hook(event)
	}
}

// JoinObservers returns an observer that tells each of the given ones, in order.
// A nil observer is left out.
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
			reflect.ValueOf(joined).Elem().Field(i).Set(tellAll(hooks))
		}
	}
	return joined
}

// tellAll is a hook that calls several of its type.
func tellAll(hooks []reflect.Value) reflect.Value {
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
