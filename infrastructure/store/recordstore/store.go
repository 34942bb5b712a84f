package recordstore

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
)

// Store keeps aggregates of all kinds, their events and notes. What has expired is there no
// more, whether it was removed or not. Errors are faults: NotFound where a method says so,
// else Unavailable, TooLarge, Invalid and Internal, around the store's own error. It is safe
// for concurrent use.
type Store interface {
	// Aggregate returns one aggregate of a type, or NotFound.
	Aggregate(ctx context.Context, kind string, id uuid.UUID) (Row, error)
	// Aggregates returns the first aggregates of a type that are not deleted, in the order of
	// their ids, behind after.
	Aggregates(ctx context.Context, kind string, after uuid.UUID, limit int) ([]Row, error)
	// Earlier returns how far one had come that was deleted, has expired and may come again, or
	// NotFound.
	Earlier(ctx context.Context, id uuid.UUID) (aggregate.Tombstone, error)
	// Request returns the note about a request, or NotFound.
	Request(ctx context.Context, aggregateID uuid.UUID, id string) (command.Request, error)
	// Audits returns the first audit entries of an aggregate with a version above after, in
	// their order.
	Audits(ctx context.Context, aggregateID uuid.UUID, after int64, limit int) ([]query.AuditEntry, error)
	// Event returns an event of a key, or NotFound.
	Event(ctx context.Context, key, id string) (StoredEvent, error)
	// Events returns the events of a key, in any order.
	Events(ctx context.Context, key string) ([]StoredEvent, error)
	// ReplaceEvent puts document in place of an event if that is as it was read, and reports
	// whether it was. The feed does not show it again.
	ReplaceEvent(ctx context.Context, key, id string, read StoredEvent, document []byte) (bool, error)
	// Save makes one attempt to store a change: all of it or nothing. ErrExists, ErrChanged,
	// and ErrNoted, wrapped or bare, say that it is refused by what is stored.
	Save(ctx context.Context, c *Change) error
	// Saved finds out whether an earlier Save of this change was stored: its first event is
	// there, or its note. Current says that nobody has changed the aggregate since.
	Saved(ctx context.Context, c *Change) (own, current bool, err error)
	// Ambiguous reports whether a Save that ended in err may have been applied.
	Ambiguous(err error) bool
}

// What refuses a change.
var (
	// ErrExists: there is an aggregate of that id, or an event, or an audit entry.
	ErrExists = errors.New("what is to be stored is there already")
	// ErrChanged: the aggregate is not as it was read.
	ErrChanged = errors.New("the aggregate is not as it was read")
	// ErrNoted: a request of that id was answered before.
	ErrNoted = errors.New("the request is noted already")
)

// Row is an aggregate as it is stored.
type Row struct {
	ID      uuid.UUID
	Version int64
	Data    []byte // the store does not keep it
	Tag     string // the store's own for this state; may be empty
}

// Change is what one commit stores. Lifetimes count from the commit; a negative one is for
// ever.
type Change struct {
	ID   uuid.UUID
	Type string
	// Read is the aggregate as it was read: it must be that still. Its version is 0 if there
	// must be none.
	Read Row
	// Tag is that of the aggregate as this change leaves it. Save and Saved set it.
	Tag string

	// Unchanged says that the aggregate stays as it is. Then only the note is stored.
	Unchanged         bool
	Version, Sequence int64
	Data              []byte
	Deleted, Recurs   bool
	DeletedTTL        time.Duration // lifetime of a deleted one

	Events   []Event
	EventTTL time.Duration

	Request    *command.Request // nil: none
	RequestTTL time.Duration

	Audit    *query.AuditEntry // nil: none
	AuditTTL time.Duration
}

// Event is an event of a commit.
type Event struct{ ID, Document string }

// StoredEvent is an event as it is stored.
type StoredEvent struct {
	Document []byte // the store does not keep it
	At       time.Time
	Tag      string // the store's own for this state; may be empty
}
