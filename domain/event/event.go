// Package event holds the common fields of domain events, and the recorder that keeps the
// events of an aggregate until they are committed.
//
// An event is a value. It has no version and no sequence when it is recorded. The commit
// assigns both, so that a failed commit leaves no gap.
package event

import (
	"time"

	"github.com/google/uuid"
)

// Event is something that happened to an aggregate. Implementations are values
// that embed Meta.
type Event interface {
	// Action names the event's type. It is the same for every value, including the zero
	// value. It is the subject of the message on the broker.
	Action() string
	// Metadata returns the common fields.
	Metadata() Meta
	// Stamped returns a copy with the version of its commit and its place among all
	// events of the aggregate.
	Stamped(version, sequence int64) Event
}

// Meta is the fields that all events share. Events embed it.
type Meta struct {
	// ID is unique and never reused. It is the message id, by which the broker drops
	// duplicates, and the id of the stored document, by which a store recognises a
	// repeated commit.
	ID uuid.UUID
	// AggregateID is the id of the aggregate that changed.
	AggregateID uuid.UUID
	// CreatedAt is the time of the change.
	CreatedAt time.Time
	// AggregateVersion is the version of the aggregate after the commit; 0 before it.
	AggregateVersion int64
	// Sequence counts the events of the aggregate from 1 without a gap; 0 before the commit.
	Sequence int64
}

// Metadata returns m itself.
func (m Meta) Metadata() Meta { return m }

// At returns a copy of m with the version and the sequence of a commit.
func (m Meta) At(version, sequence int64) Meta {
	m.AggregateVersion, m.Sequence = version, sequence
	return m
}
