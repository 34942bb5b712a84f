package relay

import (
	"context"
	"time"
)

// Observer is told by the relay what happens. Each func may be nil; each must be quick and
// safe for concurrent use. Strings in what they get are valid during the call.
type Observer struct {
	// Handled is called at the end of every Handle.
	Handled func(ctx context.Context, s Summary)
	// Paused is called when all sends pause because the broker accepts nothing.
	Paused func(ctx context.Context, p Pause)
	// Parked is called when an event was parked.
	Parked func(ctx context.Context, e ParkedEvent)
	// Newer is called when an event comes that is parked with other content: it was
	// changed in the store. The parked one stays as it is; see Intent.FromStore.
	Newer func(ctx context.Context, e ParkedEvent)
	// Missing is called when events are missing from the history of a key.
	Missing func(ctx context.Context, m Missing)
}

func tell[E any](ctx context.Context, hook func(context.Context, E), event E) {
	if hook != nil {
		hook(ctx, event)
	}
}

// Summary tells what of a Handle call the broker may have seen before. The age of that is
// what the broker's duplicate window has to cover.
type Summary struct {
	Resent int       // events sent although the last send of their key failed: it may have been accepted
	First  bool      // the first page of an ownership: the owner before may have sent its events
	Oldest time.Time // when the oldest event of the page was committed; zero if there is none
}

// Pause tells why nothing is sent for a while; then one key goes ahead.
type Pause struct {
	Until time.Time
	Err   error // what stopped the sends; see ClassOf and ReasonOf
}

// Missing tells of events that the feed never showed: they expired before they were
// read, or somebody deleted them.
type Missing struct {
	Key         string
	First, Last int64 // their sequences; First is 0 if only the end is known
	// Lost means that the events were not sent: the ownership was resumed from a checkpoint,
	// or has itself seen what came before them. Otherwise they may have been sent long ago.
	Lost bool
}

// Level is how urgent it is that events are sent, since they expire.
type Level uint8

const (
	// Safe is below a quarter of the lifetime.
	Safe Level = iota
	// Warning is from a quarter of the lifetime.
	Warning
	// Critical is from half of the lifetime: events will be lost if nothing is done.
	Critical
)

// String returns the level as it appears in logs and metrics.
func (l Level) String() string {
	return [...]string{"safe", "warning", "critical"}[l]
}

// LevelOf returns how urgent it is when the oldest unsent event has the given age. ttl is
// the lifetime of event documents; 0 or less: they do not expire.
func LevelOf(oldest, ttl time.Duration) Level {
	switch {
	case ttl <= 0 || oldest < ttl/4:
		return Safe
	case oldest < ttl/2:
		return Warning
	}
	return Critical
}
