package consumer

import (
	"context"
	"fmt"
)

// Inbox remembers for each key how far its history has been handled. Implementations
// are safe for concurrent use; one key is used by one goroutine at a time in a process,
// and by the one holder of its session among processes, except for a moment when a lock
// was lost.
type Inbox interface {
	// Last returns the mark of key, the zero Mark if there is none. It is asked once when
	// a session is accepted.
	Last(ctx context.Context, key string) (Mark, error)
	// Record sets the mark of key. It never moves a mark back: a mark whose sequence is
	// not above the stored one is left out without an error.
	Record(ctx context.Context, key string, m Mark) error
}

// Mark is the last event of a key that was handled.
type Mark struct {
	Sequence         int64
	AggregateVersion int64
	EventID          string
}

// Verdict is what the inbox says of an event.
type Verdict uint8

const (
	// Fresh is the next event of its key, or one of a key not known yet.
	Fresh Verdict = iota
	// Gap is an event whose predecessor has not been handled.
	Gap
	// Duplicate is the event that was handled last.
	Duplicate
	// Stale is an event from before the one that was handled last.
	Stale
)

// String returns the verdict as it appears in logs and metrics.
func (v Verdict) String() string {
	switch v {
	case Fresh:
		return "fresh"
	case Gap:
		return "gap"
	case Duplicate:
		return "duplicate"
	case Stale:
		return "stale"
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// Judge compares an event with the mark of its key. Without a sequence it goes by the
// event id and the version of the aggregate, and finds no gaps.
func Judge(last Mark, e *Event) Verdict {
	switch {
	case last == Mark{}:
		return Fresh
	case e.ID != "" && e.ID == last.EventID:
		return Duplicate
	case e.Sequence == 0 || last.Sequence == 0:
		if e.AggregateVersion != 0 && e.AggregateVersion < last.AggregateVersion {
			return Stale
		}
		return Fresh
	case e.Sequence <= last.Sequence:
		return Stale
	case e.Sequence > last.Sequence+1:
		return Gap
	}
	return Fresh
}
