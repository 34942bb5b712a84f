package relay

import (
	"context"
	"time"
)

// Observer receives the events of a relay. Each func may be nil. Each must return quickly and be
// safe for concurrent use. Documents in the arguments are valid only during the call.
type Observer struct {
	// Handled is called at the end of every Handle.
	Handled func(ctx context.Context, s Summary)
	// Paused is called when all sends to a shard are paused because the broker accepts nothing.
	Paused func(ctx context.Context, p Pause)
	// Parked is called after an event was parked.
	Parked func(ctx context.Context, e ParkedEvent)
	// Newer is called when the feed returns a parked event with other content, because the
	// event was changed in the store. The parked content stays; see Intent.FromStore.
	Newer func(ctx context.Context, e ParkedEvent)
	// Missing is called when events of a key are missing.
	Missing func(ctx context.Context, m Missing)
}

func notify[E any](ctx context.Context, hook func(context.Context, E), event E) {
	if hook != nil {
		hook(ctx, event)
	}
}

// Summary describes the possible duplicates in a Handle call. Their age must be within the
// duplicate window of the broker.
type Summary struct {
	Resent int       // events sent again after a failure that may have been a lost answer
	First  bool      // first page of an ownership: the previous owner may have sent its events
	Oldest time.Time // commit time of the oldest event of the page; zero if there is none
}

// Pause is a pause of all sends to a shard. After Until, one key is sent as a probe.
type Pause struct {
	Until time.Time
	Err   error  // the cause; see ClassOf and ReasonOf
	Shard string // see Options.Shards
}

// Missing is a range of events that the feed did not return, because they expired or were
// deleted before they were read.
type Missing struct {
	Key         string
	First, Last int64 // their sequences; First is 0 if only the end is known
	// Lost means that the events were certainly not sent: Ownership.Resumed
	// was set, or this owner has seen the event before them. Otherwise they may have been
	// sent long ago.
	Lost bool
}

// Level is the urgency of unsent events, which expire.
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

// LevelOf returns the level for the age of the oldest unsent event. ttl is the lifetime of event
// documents; with 0 or less they do not expire.
func LevelOf(oldest, ttl time.Duration) Level {
	switch {
	case ttl <= 0 || oldest < ttl/4:
		return Safe
	case oldest < ttl/2:
		return Warning
	}
	return Critical
}
