package relay

import (
	"context"
	"time"
)

// Hooks are called by the relay. Each may be nil; each must be quick and safe for
// concurrent use. Strings in what they get share the memory of the page: they are
// valid during the call.
type Hooks struct {
	// Handled is called at the end of every Handle.
	Handled func(ctx context.Context, s Summary)
	// Retrying is called before the relay pauses and publishes again.
	Retrying func(ctx context.Context, r Retry)
	// Parked is called when an event was parked.
	Parked func(ctx context.Context, e ParkedEvent)
	// Missing is called when events are missing from the history of a key.
	Missing func(ctx context.Context, m Missing)
}

// Summary counts what became of the changes of one Handle call.
type Summary struct {
	Changes  int // documents given
	Skipped  int // documents that are no events
	Keys     int // partition keys with events
	Accepted int // events that the broker accepted
	Parked   int // events that were parked because their key is
	Failed   int // events that are neither, those held back by others included

	// Resent is how many events were sent again although an earlier try may have been
	// accepted: duplicates for the broker to drop.
	Resent int
	// First says that this is the first page of a tenure: the owner before may have sent
	// its events already.
	First bool
	// Oldest is when the oldest event of the page was committed; zero if there is none.
	// The age of what is sent again, with Resent or First, is what the broker's duplicate
	// window has to cover.
	Oldest time.Time
}

// Retry tells why the relay pauses.
type Retry struct {
	Round int           // 1 before the first repetition
	Keys  int           // keys with something left to send
	Pause time.Duration // until it publishes again
	Err   error         // the first failure; see ClassOf and ReasonOf
}

// Missing tells of events that the feed never showed: they expired before they were
// read, or somebody deleted them.
type Missing struct {
	Key         string
	First, Last int64 // their sequences; First is 0 if only the end is known
	// Lost means that the events were not sent: the tenure was resumed from a checkpoint,
	// or has itself seen what came before them. Otherwise they may have been sent long ago.
	Lost bool
}
