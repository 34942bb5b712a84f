package parked

import (
	"context"
	"errors"

	"feedbox/application/relay"
)

// Records keeps gates and parked events. Errors are faults, except ErrChanged. It is safe for
// concurrent use.
type Records interface {
	// Find returns the gate of key and its events with these ids, or the zero Gate. The events
	// must not be read before the gate.
	Find(ctx context.Context, key string, ids []string) (Gate, []relay.ParkedEvent, error)
	// Gates returns all gates, or only those that were stored as wanted.
	Gates(ctx context.Context, wanted bool) ([]Gate, error)
	// First is that of relay.DrainStore.
	First(ctx context.Context, key string, limit, maxBytes int) ([]relay.ParkedEvent, error)
	// Skipped returns the skipped events of key, in the order of their positions.
	Skipped(ctx context.Context, key string) ([]relay.Skipped, error)
	// SkippedAmong returns those of the events that were skipped.
	SkippedAmong(ctx context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error)
	// Commit stores a change, everything or nothing, and returns the new version of the gate.
	// If the stored gate has another version, the error wraps ErrChanged.
	Commit(ctx context.Context, c *Change) (version string, err error)
}

// ErrChanged reports that a gate was changed after it was read.
var ErrChanged = errors.New("the gate was changed after it was read")

// Gate is a stored gate.
type Gate struct {
	Key     string
	Version string // "": there is none
	Data    []byte // JSON
}

// Change is the change of a gate and its events by one commit.
type Change struct {
	// Gate replaces the stored gate with its version, or creates one if Version is empty.
	Gate   Gate
	Wanted bool // Records.Gates returns the gate as wanted
	Open   bool // the gate is removed instead
	// Put are new events of the gate.
	Put []relay.ParkedEvent
	// Remove are the ids of events that leave the gate.
	Remove []string
	// Skipped is the record of one of the removed events; nil: none.
	Skipped *relay.Skipped
}
