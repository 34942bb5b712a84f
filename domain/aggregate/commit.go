package aggregate

import "feedbox/domain/event"

// Commit is what one commit of an aggregate gives it: its version, and the events that are
// stored with its state, all of it or nothing.
type Commit struct {
	// Version is the aggregate's after the commit.
	Version int64
	// Sequence is that of the last of Events.
	Sequence int64
	// Events are in order, each with the commit's version and its own sequence.
	Events []event.Event
	// Create says that the aggregate was never stored before.
	Create bool
}

// Pending implements Aggregate. It changes nothing: asking twice gives the same answer.
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

// Committed implements Aggregate: the aggregate takes the commit's version and sequence and
// forgets its events.
func (r *Root) Committed(c Commit) {
	r.stored = true
	r.version, r.sequence = c.Version, c.Sequence
	r.events.Clear()
}
