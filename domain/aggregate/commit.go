package aggregate

import "feedbox/domain/event"

// Commit is the result of one commit of an aggregate: its new version, and the events that
// are stored in the same transaction as its state.
type Commit struct {
	// Version is the version of the aggregate after the commit.
	Version int64
	// Sequence is the sequence of the last of Events.
	Sequence int64
	// Events are in order, each with the commit's version and its own sequence.
	Events []event.Event
	// Create is true if the aggregate was never stored before.
	Create bool
}

// Pending implements Aggregate. It changes nothing, so that a failed commit can be retried.
func (r *Root) Pending() (Commit, bool) {
	if r.events.Len() == 0 {
		return Commit{}, false
	}
	version := r.version + 1
	return Commit{
		Version:  version,
		Sequence: r.sequence + int64(r.events.Len()),
		Events:   r.events.Stamped(version, r.sequence),
		Create:   r.IsNew(),
	}, true
}

// Committed implements Aggregate: the aggregate takes the version and the sequence of the
// commit and clears its events.
func (r *Root) Committed(c Commit) {
	r.stored = true
	r.version, r.sequence = c.Version, c.Sequence
	r.events.Clear()
}
