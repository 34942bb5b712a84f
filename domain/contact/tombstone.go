package contact

import (
	"fmt"

	"github.com/google/uuid"
)

// Tombstone is what stays of a deleted contact whose id may come again, when its data
// is erased: how far version and sequence had come. It holds no personal data.
type Tombstone struct {
	ID       uuid.UUID
	Version  int64
	Sequence int64
}

// Recurs reports whether the contact's id may come again: it was derived from an
// idempotency key, and the same request makes the same id. Ids made at random never do.
func (c *Contact) Recurs() bool { return c.requestHash != "" }

// Tombstone returns what is to stay of the contact, and whether anything is: it is
// deleted and its id may come again.
func (s State) Tombstone() (t Tombstone, needed bool) {
	return Tombstone{ID: s.ID, Version: s.Version, Sequence: s.Sequence}, s.Deleted && s.RequestHash != ""
}

// Continue makes a contact that was never stored go on where a deleted one of its id
// ended: to consumers, who know the id, its events follow those of the other. From 1
// again they would be taken for old ones.
func (c *Contact) Continue(t Tombstone) error {
	if !c.IsNew() || t.ID != c.id || t.Version < 1 || t.Sequence < t.Version {
		return fmt.Errorf("continue contact %s: version %d and sequence %d of %s cannot come before it", c.id, t.Version, t.Sequence, t.ID)
	}
	c.version, c.sequence = t.Version, t.Sequence
	return nil
}
