package consumer

import "fmt"

// Outcome is what became of a delivery.
type Outcome struct {
	Event   *Event
	Verdict Verdict // of the inbox
	Action  Action
	Missing int64 // for a gap: how many events are missing before this one
	Err     error // of the handler, the inbox or the settlement
}

// Action is how a delivery ended.
type Action uint8

const (
	// Handled means that the handler took the event and it was completed.
	Handled Action = iota
	// Dropped means that a duplicate or stale event was completed without the handler.
	Dropped
	// PutBack means that the event will be delivered again.
	PutBack
	// DeadLettered means that the event was moved to the dead-letter queue.
	DeadLettered
	// Deferred means that the event waits to be asked for by its sequence number.
	Deferred
	// Unsettled means that the broker did not confirm the settlement; the event may come again.
	Unsettled
)

// String returns the action as it appears in logs and metrics.
func (a Action) String() string {
	switch a {
	case Handled:
		return "handled"
	case Dropped:
		return "dropped"
	case PutBack:
		return "put_back"
	case DeadLettered:
		return "dead_lettered"
	case Deferred:
		return "deferred"
	case Unsettled:
		return "unsettled"
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}
