package contact

import "feedbox/domain/aggregate"

// Pending returns what a commit has to store now, and false when nothing has
// changed. It changes nothing itself: asking twice gives the same answer.
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
