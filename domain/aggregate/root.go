package aggregate

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/event"
)

// Aggregate is an aggregate root as a store sees it. A pointer to a struct that embeds [Root]
// by value implements it.
type Aggregate interface {
	// ID is also the partition key of the aggregate, its events and its notes.
	ID() uuid.UUID
	// Version is the version of the last commit. Before the first commit it is 0, or the
	// version of the deleted aggregate that this one continues.
	Version() int64
	// Snapshot returns the root for Restore, as of the last commit. Only Deleted may be
	// newer.
	Snapshot() Snapshot
	// Pending returns the next commit, and false if nothing has changed.
	Pending() (Commit, bool)
	// Committed confirms that the commit that Pending returned is stored.
	Committed(c Commit)
	// HasDerivedID reports whether a later request may create the same id again.
	HasDerivedID() bool
	// Deleted reports whether the aggregate is deleted. It cannot be undone.
	Deleted() bool
	// Tombstone returns the record to keep after commit, and whether one is needed.
	Tombstone(commit Commit) (t Tombstone, needed bool)
	// Continue makes a new aggregate take over the version and sequence of a deleted one.
	Continue(t Tombstone) error
}

// Root is the part that aggregates embed. Create it with New or Restore.
type Root struct {
	id          uuid.UUID
	requestHash string
	deleted     bool
	stored      bool  // was committed
	version     int64 // of the last commit; 0: this id was never committed
	sequence    int64 // of the last committed event
	events      event.Recorder
}

var _ Aggregate = (*Root)(nil)

// Snapshot is a root as plain values, for stores.
type Snapshot struct {
	ID uuid.UUID
	// Version rises by one per commit, from 1, or from the version of a deleted aggregate
	// of the same id.
	Version int64
	// Sequence is the sequence of the aggregate's last event.
	Sequence int64
	Deleted  bool
	// RequestHash distinguishes the request that created the aggregate from other requests
	// under the same idempotency key. It is empty for a request without a key.
	RequestHash string
}

// New returns the root of an aggregate that is not stored yet. See Snapshot for requestHash.
// The nil id is an error.
func New(id uuid.UUID, requestHash string) (Root, error) {
	if id == uuid.Nil {
		return Root{}, errors.New("new aggregate: the id is missing")
	}
	return Root{id: id, requestHash: requestHash}, nil
}

// Restore returns the root of an aggregate that a store has read. A state that no commit can
// have stored is an error.
func Restore(s Snapshot) (Root, error) {
	if s.ID == uuid.Nil {
		return Root{}, errors.New("the stored aggregate has no id")
	}
	if s.Version < 1 || s.Sequence < s.Version {
		return Root{}, fmt.Errorf("version %d and sequence %d of %s are impossible, because every commit raises both", s.Version, s.Sequence, s.ID)
	}
	return Root{stored: true, id: s.ID, requestHash: s.RequestHash, deleted: s.Deleted, version: s.Version, sequence: s.Sequence}, nil
}

// ID implements Aggregate.
func (r *Root) ID() uuid.UUID { return r.id }

// Version implements Aggregate.
func (r *Root) Version() int64 { return r.version }

// IsNew reports whether the aggregate was never committed.
func (r *Root) IsNew() bool { return !r.stored }

// Deleted reports whether the aggregate is deleted. A deleted aggregate stays so.
func (r *Root) Deleted() bool { return r.deleted }

// MarkDeleted marks the aggregate as deleted. The verb that calls it records the event.
func (r *Root) MarkDeleted() { r.deleted = true }

// Snapshot implements Aggregate.
func (r *Root) Snapshot() Snapshot {
	return Snapshot{ID: r.id, Version: r.version, Sequence: r.sequence, Deleted: r.deleted, RequestHash: r.requestHash}
}

// Meta returns the common fields of an event of the aggregate. It drops the monotonic reading
// of now, because stores do not keep it.
func (r *Root) Meta(eventID uuid.UUID, now time.Time) event.Meta {
	return event.Meta{ID: eventID, AggregateID: r.id, CreatedAt: now.Round(0)}
}

// Events returns the recorder to which the verbs of the aggregate add their events.
func (r *Root) Events() *event.Recorder { return &r.events }

// Record adds an event with the payload to the aggregate of r. eventID must never have been
// used before.
func Record[P event.Payload](r *Root, payload P, eventID uuid.UUID, now time.Time) {
	r.events.Record(event.Of[P]{Meta: r.Meta(eventID, now), Payload: payload})
}

// RecordLast is Record for events of which only the last in a commit counts: it replaces a
// pending event of the same action.
func RecordLast[P event.Payload](r *Root, payload P, eventID uuid.UUID, now time.Time) {
	r.events.RecordLast(event.Of[P]{Meta: r.Meta(eventID, now), Payload: payload})
}
