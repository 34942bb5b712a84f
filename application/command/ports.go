package command

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/aggregate"
)

// Clock tells the time, such as time.Now. It is safe for concurrent use.
type Clock func() time.Time

// IDs makes ids that were never used before, such as uuid.New. It is safe for
// concurrent use.
type IDs func() uuid.UUID

// Ports are what commands on the aggregates A need. Work, IDs, Now and Noun are required.
// They are safe for concurrent use.
type Ports[A aggregate.Aggregate] struct {
	Work UnitsOfWork[A]
	IDs  IDs
	Now  Clock
	// Audit stores an audit entry with each commit.
	Audit bool
	// Noun is what people call such an aggregate, such as "order". It stands in faults.
	Noun string
	// Namespace keeps the ids that are derived from idempotency keys apart from those of
	// other kinds (RFC 9562 5.8). Without one, no create may come under a key.
	Namespace uuid.UUID
}

// Validate reports what is missing.
func (p *Ports[A]) Validate() error {
	if p.Work == nil || p.IDs == nil || p.Now == nil || p.Noun == "" {
		return errors.New("commands need Work, IDs, Now and Noun")
	}
	return nil
}

// commit commits work, with an audit entry if there is something to enter.
func (p *Ports[A]) commit(ctx context.Context, work UnitOfWork[A], a A, sender Sender) (Receipt, error) {
	if commit, changed := a.Pending(); changed && p.Audit {
		entry := query.AuditEntry{AggregateID: a.ID(), Version: commit.Version, At: p.Now(), Principal: sender.Principal}
		for _, e := range commit.Events {
			meta := e.Metadata()
			entry.Events = append(entry.Events, query.AuditedEvent{ID: meta.ID, Action: e.Action(), Sequence: meta.Sequence})
		}
		if err := work.NoteAudit(entry); err != nil {
			return Receipt{}, err
		}
	}
	return work.Commit(ctx)
}
