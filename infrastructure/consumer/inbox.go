package consumer

import (
	"context"
	"fmt"
)

// Inbox stores the last handled event of each key. Implementations are safe for concurrent use. In
// a process one goroutine at a time uses a key. Across processes only the owner of the session uses
// it, except for a short time after a lost lock.
type Inbox interface {
	// Last returns the mark of key, or the zero Mark if there is none. A kit calls it when it
	// begins to handle a key and after a failure of the inbox.
	Last(ctx context.Context, key string) (Mark, error)
	// Record sets the mark of key. A mark never moves back: Record ignores a mark whose sequence
	// is not above the stored one, without an error.
	Record(ctx context.Context, key string, m Mark) error
}

// Mark identifies the last handled event of a key.
type Mark struct {
	Sequence         int64
	AggregateVersion int64
	EventID          string
}

// Verdict classifies an event by the mark of its key.
type Verdict uint8

const (
	// Fresh is the next event of its key, or the first one of a new key.
	Fresh Verdict = iota
	// Gap is an event whose predecessor has not been handled.
	Gap
	// Duplicate is the last handled event.
	Duplicate
	// Stale is an event before the last handled one.
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

// Judge compares an event with the mark of its key. Without a sequence it compares the event id and
// the aggregate version, and detects no gaps.
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
