package consumer

import "fmt"

// Outcome is the result of one delivery.
type Outcome struct {
	Event   *Event
	Verdict Verdict // of the inbox
	Action  Action
	Missing int64 // for a gap: the number of events missing before this one
	Err     error // of the handler, the inbox or the settlement
}

// Action is the way in which a delivery ended.
type Action uint8

const (
	// Handled means that the handler accepted the event and it was completed.
	Handled Action = iota
	// Dropped means that a duplicate or stale event was completed without the handler.
	Dropped
	// Abandoned means that the event will be redelivered or retried.
	Abandoned
	// DeadLettered means that the event was moved to the dead-letter queue.
	DeadLettered
	// Deferred means that the event can only be received by its sequence number.
	Deferred
	// Unsettled means that the broker did not confirm the settlement; the event may be redelivered.
	Unsettled
)

// String returns the action as it appears in logs and metrics.
func (a Action) String() string {
	switch a {
	case Handled:
		return "handled"
	case Dropped:
		return "dropped"
	case Abandoned:
		return "abandoned"
	case DeadLettered:
		return "dead_lettered"
	case Deferred:
		return "deferred"
	case Unsettled:
		return "unsettled"
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}
