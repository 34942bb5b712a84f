package parked

import (
	"context"
	"errors"

	"feedbox/application/relay"
)

// Store keeps gates and events as they are. Errors are faults, but for ErrChanged. It is safe
// for concurrent use.
type Store interface {
	// Find returns the gate of key, the zero Gate if there is none, and those of the events
	// with these ids that are behind it. The events are not read earlier than the gate.
	Find(ctx context.Context, key string, ids []string) (Gate, []relay.ParkedEvent, error)
	// Gates returns all gates, or those that were stored as wanted.
	Gates(ctx context.Context, wanted bool) ([]Gate, error)
	// First returns the first events behind the gate of key, in the order of their positions.
	First(ctx context.Context, key string, limit int) ([]relay.ParkedEvent, error)
	// Skipped returns the events of key that were left out, in the order of their positions.
	Skipped(ctx context.Context, key string) ([]relay.Skipped, error)
	// Commit makes a change, all of it or nothing, and returns the new version of the gate.
	// ErrChanged, wrapped or bare, says that the gate is not as it was read.
	Commit(ctx context.Context, c *Change) (version string, err error)
}

// ErrChanged says that the gate is not as it was read.
var ErrChanged = errors.New("the gate is not as it was read")

// Gate is a gate as it is stored.
type Gate struct {
	Key     string
	Version string // "": there is none
	Data    []byte // JSON
}

// Change is what one commit does to a gate and what is behind it.
type Change struct {
	// Gate is what is stored, if its version is the stored one still, or there is none.
	Gate   Gate
	Wanted bool // Store.Gates is asked for it
	Open   bool // the gate is removed instead
	// Put are new events behind the gate.
	Put []relay.ParkedEvent
	// Remove are the ids of events that are behind it no more.
	Remove []string
	// Skipped is one of those, and is kept for the record; nil: none.
	Skipped *relay.Skipped
}
