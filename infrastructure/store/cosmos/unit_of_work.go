package cosmos

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/command"
	"feedbox/application/mediator"
	"feedbox/domain/aggregate"
	"feedbox/domain/event"
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
)

// Publisher gives a domain event to its handlers, which put it into the outbox.
// The mediator is one.
type Publisher interface {
	// Publish fails when the event has no handler or a handler fails.
	Publish(ctx context.Context, outbox mediator.Outbox, e event.Event) error
}

// direct puts every event into the outbox.
type direct struct{}

func (direct) Publish(ctx context.Context, outbox mediator.Outbox, e event.Event) error {
	return outbox.Add(ctx, e)
}

// UnitsOfWork begins units of work on the aggregates of one kind in one container, which
// may hold other kinds, too. It is safe for concurrent use.
type UnitsOfWork[A aggregate.Aggregate] struct {
	container *azcosmos.ContainerClient
	kind      *document.Kind[A]
	publisher Publisher
	options   Options
}

// UnitOfWork is one command's view of the container. It serves one goroutine.
type UnitOfWork[A aggregate.Aggregate] struct {
	documents ContainerContext
	kind      *document.Kind[A]
	publisher Publisher
	outbox    eventOutbox
	tracked   []*tracked[A]
	requests  []DataObject // notes that come before the aggregate in the transaction
	audits    []DataObject // notes that come after it
}

// NewUnitsOfWork returns units of work on the aggregates of kind in container, whose events
// go through publisher; nil puts each into the outbox.
func NewUnitsOfWork[A aggregate.Aggregate](container *azcosmos.ContainerClient, kind *document.Kind[A], publisher Publisher, o *Options) (*UnitsOfWork[A], error) {
	if container == nil {
		return nil, errors.New("cosmos: units of work need a container")
	}
	if publisher == nil {
		publisher = direct{}
	}
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if kind, err = withDefaults(kind, &options); err != nil {
		return nil, err
	}
	return &UnitsOfWork[A]{container: container, kind: kind, publisher: publisher, options: options}, nil
}

// Begin implements command.UnitsOfWork.
func (u *UnitsOfWork[A]) Begin(session string) (command.UnitOfWork[A], error) {
	token, err := store.ParseSession(session)
	if err != nil {
		return nil, err
	}
	w := &UnitOfWork[A]{documents: newContainerContext(u.container, u.options, token), kind: u.kind, publisher: u.publisher}
	w.outbox = eventOutbox{documents: &w.documents, encode: u.kind.EventData}
	return w, nil
}

// SessionToken implements command.UnitOfWork.
func (w *UnitOfWork[A]) SessionToken() string { return w.documents.session.String() }

// Commit implements command.UnitOfWork.
func (w *UnitOfWork[A]) Commit(ctx context.Context) (command.Receipt, error) {
	w.documents.Reset()
	changes, err := w.collect(ctx)
	if err != nil {
		return command.Receipt{}, err
	}
	if len(changes) == 0 {
		if err := w.confirm(ctx); err != nil {
			return command.Receipt{}, err
		}
	}
	saved, err := w.documents.Save(ctx)
	if err != nil {
		return command.Receipt{}, err
	}
	w.requests, w.audits = nil, nil
	for _, change := range changes {
		change.aggregate.Committed(change.commit)
		id := change.aggregate.ID().String()
		for _, o := range saved {
			if o.ID == id {
				change.etag = o.ETag
			}
		}
	}
	return command.Receipt{ETag: w.etag(), SessionToken: w.SessionToken()}, nil
}

// pendingChange is an aggregate with what its commit stores.
type pendingChange[A aggregate.Aggregate] struct {
	*tracked[A]
	commit aggregate.Commit
}

// collect puts the events and then the state of each changed aggregate into the
// transaction. What refuses first decides the fault: a request that was answered
// before the aggregate's ETag, and that before the audit entry of its version.
func (w *UnitOfWork[A]) collect(ctx context.Context) ([]pendingChange[A], error) {
	if err := w.createAll(w.requests); err != nil {
		return nil, err
	}
	var changes []pendingChange[A]
	for _, t := range w.tracked {
		commit, changed := t.aggregate.Pending()
		if !changed {
			continue
		}
		if err := w.publish(ctx, commit.Events); err != nil {
			return nil, fmt.Errorf("commit %s %s: %w", w.kind.Noun, t.aggregate.ID(), err)
		}
		if err := w.store(ctx, t, commit); err != nil {
			return nil, fmt.Errorf("commit %s %s: %w", w.kind.Noun, t.aggregate.ID(), err)
		}
		changes = append(changes, pendingChange[A]{tracked: t, commit: commit})
	}
	return changes, w.createAll(w.audits)
}

// publish makes sure that each event is in the outbox.
func (w *UnitOfWork[A]) publish(ctx context.Context, events []event.Event) error {
	for _, e := range events {
		if err := w.publisher.Publish(ctx, &w.outbox, e); err != nil {
			return err
		}
		if !w.documents.Contains(e.Metadata().ID.String()) {
			return fmt.Errorf("no handler has put %s into the outbox, it would be lost", e.Action())
		}
	}
	return nil
}

func (w *UnitOfWork[A]) createAll(objects []DataObject) error {
	for _, o := range objects {
		if err := w.documents.Create(o); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	return nil
}
