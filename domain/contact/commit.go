package contact

import "feedbox/domain/event"

// Commit is what one commit of a contact has to store, all of it or nothing.
type Commit struct {
	// State is the contact with the commit's version and last sequence.
	State State
	// Events are in order, each with the commit's version and its own sequence.
	Events []event.Event
	// Create says that the contact was never stored before.
	Create bool
}

// Pending returns what a commit has to store now, and false when nothing has
// changed. It changes nothing itself: asking twice gives the same answer.
func (c *Contact) Pending() (Commit, bool) {
	if c.events.Len() == 0 {
		return Commit{}, false
	}
	state := c.State()
	state.Version = c.version + 1
	state.Sequence = c.sequence + int64(c.events.Len())
	events := c.events.Stamped(state.Version, c.sequence)
	for i, e := range events {
		if created, ok := e.(ContactCreatedEvent); ok {
			created.Contact = state
			events[i] = created
		}
	}
	return Commit{State: state, Events: events, Create: c.IsNew()}, true
}

// Committed confirms that what Pending returned is stored: the contact takes the
// commit's version and sequence and forgets its events.
func (c *Contact) Committed(commit Commit) {
	c.stored = true
	c.version, c.sequence = commit.State.Version, commit.State.Sequence
	c.events.Clear()
}
