package aggregate

import (
	"fmt"

	"github.com/google/uuid"
)

// Tombstone is the last version and sequence of a deleted aggregate. It remains after the
// data of the aggregate is erased, so that an aggregate created under the same id can
// continue them. It holds no personal data.
type Tombstone struct {
	ID       uuid.UUID
	Version  int64
	Sequence int64
}

// HasDerivedID reports whether the id was derived from an idempotency key. The same request
// derives the same id again; random ids never repeat.
func (r *Root) HasDerivedID() bool { return r.requestHash != "" }

// Tombstone implements Aggregate. A tombstone is needed if the aggregate is deleted and its
// id is derived.
func (r *Root) Tombstone(commit Commit) (t Tombstone, needed bool) {
	return Tombstone{ID: r.id, Version: commit.Version, Sequence: commit.Sequence}, r.deleted && r.HasDerivedID()
}

// Continue implements Aggregate for an aggregate that was never stored. Consumers track
// sequences by id: if the sequence started at 1 again, they would discard the events as
// duplicates.
func (r *Root) Continue(t Tombstone) error {
	if !r.IsNew() || t.ID != r.id || t.Version < 1 || t.Sequence < t.Version {
		return fmt.Errorf("continue %s: it cannot follow version %d and sequence %d of %s", r.id, t.Version, t.Sequence, t.ID)
	}
	r.version, r.sequence = t.Version, t.Sequence
	return nil
}
