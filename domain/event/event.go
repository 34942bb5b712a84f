package event

import (
	"time"

	"github.com/google/uuid"
)

// Event is something that happened to an aggregate. Implementations are values
// that embed Meta.
type Event interface {
	// Action names the event's type. It does not depend on the value, so the zero
	// value answers too. It is the subject of the message on the broker.
	Action() string
	// Metadata returns what all events carry.
	Metadata() Meta
	// Stamped returns a copy that belongs to the commit which gives the aggregate
	// this version, and that has this place among all events of the aggregate.
	Stamped(version, sequence int64) Event
}

// Meta is what every event carries. Events embed it.
type Meta struct {
	// ID is unique and never used again. It becomes the message id, by which the
	// broker drops duplicates, and the id of the stored document, by which a repeated
	// commit is recognised.
	ID uuid.UUID
	// AggregateID is the aggregate the event happened to.
	AggregateID uuid.UUID
	// CreatedAt is when it happened.
	CreatedAt time.Time
	// AggregateVersion is the version the commit gave to the aggregate; 0 before.
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
