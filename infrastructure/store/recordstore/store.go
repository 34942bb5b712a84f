package recordstore

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/application/relay"
	"feedbox/domain/aggregate"
	"feedbox/infrastructure/store/unitofwork"
)

// Store keeps aggregates of all kinds, their events and notes. An expired record is not found,
// even if it was not removed yet. Errors are faults that wrap the store's own error: NotFound
// where a method says so, Unavailable, TooLarge, Invalid and Internal. It is safe for
// concurrent use.
type Store interface {
	// Aggregate returns one aggregate of a type, or NotFound.
	Aggregate(ctx context.Context, kind string, id uuid.UUID) (Record, error)
	// Aggregates returns the first aggregates of a type with an id above after, in the order of
	// their ids, without deleted ones.
	Aggregates(ctx context.Context, kind string, after uuid.UUID, limit int) ([]Record, error)
	// Earlier returns the tombstone of an aggregate that was deleted and has expired and whose
	// id may be used again, or NotFound.
	Earlier(ctx context.Context, id uuid.UUID) (aggregate.Tombstone, error)
	// Request returns the note about a request, or NotFound.
	Request(ctx context.Context, aggregateID uuid.UUID, id string) (command.Request, error)
	// Audits returns the first audit entries of an aggregate with a version above after, in
	// the order of their versions.
	Audits(ctx context.Context, aggregateID uuid.UUID, after int64, limit int) ([]query.AuditEntry, error)
	// Event returns an event of a key, or NotFound.
	Event(ctx context.Context, key, id string) (StoredEvent, error)
	// Events returns the events of a key, in any order.
	Events(ctx context.Context, key string) ([]StoredEvent, error)
	// Recent implements relay.Lister. listed converts an event that has Key, ID and LSN.
	Recent(ctx context.Context, q relay.RecentQuery, listed func(StoredEvent) relay.RecentEvent) (relay.RecentPage, error)
	// ReplaceEvent replaces an event if it is as it was read, and reports whether it was. The
	// feed does not deliver it again.
	ReplaceEvent(ctx context.Context, key, id string, read StoredEvent, document []byte) (bool, error)
	// Save makes one attempt to store a change: everything or nothing. If the stored records
	// refuse it, the error wraps ErrExists, ErrChanged or ErrNoted.
	Save(ctx context.Context, c *Change) error
	// Saved reports whether an earlier Save of this change was stored, by its first event or
	// its note. current reports whether the aggregate is unchanged since.
	Saved(ctx context.Context, c *Change) (own, current bool, err error)
	// Ambiguous reports whether a Save that ended in err may have been applied.
	Ambiguous(err error) bool
}

// Reasons to refuse a change.
var (
	// ErrExists: an aggregate, event or audit entry of that id exists.
	ErrExists = errors.New("a record of that id exists")
	// ErrChanged: the aggregate was changed after it was read.
	ErrChanged = errors.New("the aggregate was changed after it was read")
	// ErrNoted: a request of that id was answered before.
	ErrNoted = errors.New("the request was answered before")
)

// Record is a stored aggregate.
type Record struct {
	ID      uuid.UUID
	Version int64
	Data    []byte // owned by the caller
	Tag     string // the store's own name of this state; may be empty
}

// Change is the change of one aggregate with its notes, stored by one commit. Save and Saved set
// After.Tag. Lifetimes count from the commit; a negative one is for ever.
type Change struct {
	*unitofwork.Change
	Type     string
	EventTTL time.Duration

	Request    *command.Request // nil: none
	RequestTTL time.Duration

	Audit    *query.AuditEntry // nil: none
	AuditTTL time.Duration
}

// StoredEvent is a stored event.
type StoredEvent struct {
	Document []byte // owned by the caller
	At       time.Time
	Tag      string // the store's own name of this state; may be empty

	// Key and ID are set by Store.Recent.
	Key, ID string
	// LSN is that of the event in the feed; 0 if the store knows it only there. Set by Store.Recent and
	// Store.Events.
	LSN int64
}

// Pause waits between half of wait and wait, so that hosts do not retry in step. It returns
// the error of ctx if that ends first.
func Pause(ctx context.Context, wait time.Duration) error {
	return unitofwork.Pause(ctx, unitofwork.Jitter(max(wait, 0)))
}
