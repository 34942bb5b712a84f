package command

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/aggregate"
)

// Clock returns the current time, such as time.Now. It is safe for concurrent use.
type Clock func() time.Time

// IDs returns ids that were never used before, such as uuid.New. It is safe for concurrent
// use.
type IDs func() uuid.UUID

// Service runs commands on aggregates of kind A. Work, IDs, Now and Noun are required. It is
// safe for concurrent use.
type Service[A aggregate.Aggregate] struct {
	Work UnitsOfWork[A]
	IDs  IDs
	Now  Clock
	// Audit stores an audit entry with each commit.
	Audit bool
	// Noun names such an aggregate in faults, such as "order".
	Noun string
	// Namespace separates the ids derived from idempotency keys from those of other kinds
	// (RFC 9562 5.8). It is required for a create with a key.
	Namespace uuid.UUID
}

// Validate returns an error if a required field is missing.
func (s *Service[A]) Validate() error {
	if s.Work == nil || s.IDs == nil || s.Now == nil || s.Noun == "" {
		return errors.New("command service: Work, IDs, Now and Noun are required")
	}
	return nil
}

// commit commits work, with an audit entry if something has changed.
func (s *Service[A]) commit(ctx context.Context, work UnitOfWork[A], a A, sender Sender) (Receipt, error) {
	if commit, changed := a.Pending(); changed && s.Audit {
		entry := query.AuditEntry{AggregateID: a.ID(), Version: commit.Version, At: s.Now(), Principal: sender.Principal}
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
