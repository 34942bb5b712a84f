package aggregate

import (
	"fmt"

	"github.com/google/uuid"
)

// Tombstone is what stays of a deleted aggregate whose id may come again, when its data
// is erased: how far version and sequence had come. It holds no personal data.
type Tombstone struct {
	ID       uuid.UUID
	Version  int64
	Sequence int64
}

// Recurs reports whether the aggregate's id may come again: it was derived from an
// idempotency key, and the same request makes the same id. Ids made at random never do.
func (r *Root) Recurs() bool { return r.requestHash != "" }

// Tombstone returns what is to stay of the aggregate after commit, and whether anything is:
// it is deleted and its id may come again.
func (r *Root) Tombstone(commit Commit) (t Tombstone, needed bool) {
	return Tombstone{ID: r.id, Version: commit.Version, Sequence: commit.Sequence}, r.deleted && r.Recurs()
}

// Continue makes an aggregate that was never stored go on where a deleted one of its id
// ended: to consumers, who know the id, its events follow those of the other. From 1
// again they would be taken for old ones.
func (r *Root) Continue(t Tombstone) error {
	if !r.IsNew() || t.ID != r.id || t.Version < 1 || t.Sequence < t.Version {
		return fmt.Errorf("continue %s: version %d and sequence %d of %s cannot come before it", r.id, t.Version, t.Sequence, t.ID)
	}
	r.version, r.sequence = t.Version, t.Sequence
	return nil
}
