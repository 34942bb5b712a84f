package contact

import "feedbox/domain/aggregate"

// Pending implements aggregate.Aggregate. It adds the committed state to a
// ContactCreatedEvent, because verbs may have changed a new contact since the event was
// recorded.
func (c *Contact) Pending() (aggregate.Commit, bool) {
	commit, changed := c.Root.Pending()
	for i, e := range commit.Events {
		if created, ok := e.(ContactCreatedEvent); ok {
			created.Contact = c.StateAt(commit)
			commit.Events[i] = created
		}
	}
	return commit, changed
}
