package aggregate

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/event"
)

// Aggregate is what a store needs of an aggregate root. Whatever embeds [Root] by value and
// is used by its pointer is one.
type Aggregate interface {
	// ID is also the partition key of the aggregate and of all that belongs to it.
	ID() uuid.UUID
	// Version is that of the last commit; before the first 0, or that of the aggregate it
	// continues.
	Version() int64
	// Snapshot is what Restore wants, as of the last commit but for Deleted.
	Snapshot() Snapshot
	// Pending returns what a commit has to store now, and false when nothing has changed.
	Pending() (Commit, bool)
	// Committed confirms that what Pending returned is stored.
	Committed(c Commit)
	// Recurs reports whether the aggregate's id may come again.
	Recurs() bool
	// Deleted reports whether it is deleted, and stays so.
	Deleted() bool
	// Tombstone returns what is to stay of the aggregate after commit, and whether
	// anything is.
	Tombstone(commit Commit) (t Tombstone, needed bool)
	// Continue makes a new aggregate go on where a deleted one of its id ended.
	Continue(t Tombstone) error
}

// Root is embedded in an aggregate. Create it with New or Restore.
type Root struct {
	id          uuid.UUID
	requestHash string
	deleted     bool
	stored      bool  // was committed
	version     int64 // of the last commit; 0: none, also of no other aggregate of this id
	sequence    int64 // of the last committed event
	events      event.Recorder
}

var _ Aggregate = (*Root)(nil)

// Snapshot is a root as plain values, for stores.
type Snapshot struct {
	ID uuid.UUID
	// Version rises by one per commit, from 1, or from that of a deleted aggregate of the
	// same id.
	Version int64
	// Sequence is the sequence of the aggregate's last event.
	Sequence int64
	Deleted  bool
	// RequestHash tells the request that created the aggregate from any other one that
	// came under the same idempotency key. It is empty for a request without a key.
	RequestHash string
}

// New returns the root of an aggregate that is not stored yet. RequestHash is that of
// Snapshot. It refuses the nil id.
func New(id uuid.UUID, requestHash string) (Root, error) {
	if id == uuid.Nil {
		return Root{}, errors.New("an aggregate needs an id")
	}
	return Root{id: id, requestHash: requestHash}, nil
}

// Restore returns the root of an aggregate that a store has read. It refuses what no
// commit can have left.
func Restore(s Snapshot) (Root, error) {
	if s.ID == uuid.Nil {
		return Root{}, errors.New("the stored aggregate has no id")
	}
	if s.Version < 1 || s.Sequence < s.Version {
		return Root{}, fmt.Errorf("version %d and sequence %d of %s cannot be; a commit raises both", s.Version, s.Sequence, s.ID)
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

// MarkDeleted makes the aggregate deleted. The verb that calls it records the event.
func (r *Root) MarkDeleted() { r.deleted = true }

// Snapshot implements Aggregate.
func (r *Root) Snapshot() Snapshot {
	return Snapshot{ID: r.id, Version: r.version, Sequence: r.sequence, Deleted: r.deleted, RequestHash: r.requestHash}
}

// Meta returns what an event carries that happens to the aggregate now. The monotonic
// reading of now, which no store keeps, is dropped.
func (r *Root) Meta(eventID uuid.UUID, now time.Time) event.Meta {
	return event.Meta{ID: eventID, AggregateID: r.id, CreatedAt: now.Round(0)}
}

// Events is where the verbs of the aggregate record what happened.
func (r *Root) Events() *event.Recorder { return &r.events }

// Record records that what happened to the aggregate of r, under eventID, which must never
// have been used.
func Record[P event.Payload](r *Root, what P, eventID uuid.UUID, now time.Time) {
	r.events.Record(event.Of[P]{Meta: r.Meta(eventID, now), Payload: what})
}

// RecordLast is Record for events of which only the last of a commit counts: it takes the
// place of one of the same action that waits for the commit.
func RecordLast[P event.Payload](r *Root, what P, eventID uuid.UUID, now time.Time) {
	r.events.RecordLast(event.Of[P]{Meta: r.Meta(eventID, now), Payload: what})
}
