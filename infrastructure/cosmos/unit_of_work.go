package cosmos

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/command"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/event"
	"feedbox/infrastructure/cosmos/internal/store"
)

// Publisher gives a domain event to its handlers, which put it into the outbox.
// The mediator is one.
type Publisher interface {
	// Publish fails when the event has no handler or a handler fails.
	Publish(ctx context.Context, outbox mediator.Outbox, e event.Event) error
}

// UnitsOfWork begins units of work on one container. It is safe for concurrent use.
type UnitsOfWork struct {
	container *azcosmos.ContainerClient
	publisher Publisher
	options   Options
}

// UnitOfWork is one command's view of the container. It serves one goroutine.
type UnitOfWork struct {
	context   ContainerContext
	publisher Publisher
	events    *EventRepository
	contacts  ContactRepository
	requests  []DataObject // notes that come before the contact in the transaction
	audits    []DataObject // notes that come after it
}

var (
	_ command.UnitsOfWork = (*UnitsOfWork)(nil)
	_ command.UnitOfWork  = (*UnitOfWork)(nil)
)

// NewUnitsOfWork returns units of work on container, whose events go through
// publisher.
func NewUnitsOfWork(container *azcosmos.ContainerClient, publisher Publisher, o *Options) (*UnitsOfWork, error) {
	if container == nil || publisher == nil {
		return nil, errors.New("cosmos: units of work need a container and a publisher")
	}
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &UnitsOfWork{container: container, publisher: publisher, options: options}, nil
}

// Begin implements command.UnitsOfWork.
func (u *UnitsOfWork) Begin(session string) (command.UnitOfWork, error) {
	token, err := store.ParseSession(session)
	if err != nil {
		return nil, err
	}
	w := &UnitOfWork{context: newContainerContext(u.container, u.options, token), publisher: u.publisher}
	w.events = &EventRepository{documents: &w.context}
	w.contacts.documents = &w.context
	return w, nil
}

// Contacts implements command.UnitOfWork.
func (w *UnitOfWork) Contacts() command.Contacts { return &w.contacts }

// SessionToken implements command.UnitOfWork.
func (w *UnitOfWork) SessionToken() string { return w.context.session.String() }

// Commit implements command.UnitOfWork.
func (w *UnitOfWork) Commit(ctx context.Context) (command.Receipt, error) {
	w.context.Reset()
	changes, err := w.collect(ctx)
	if err != nil {
		w.context.Reset()
		return command.Receipt{}, err
	}
	if len(changes) == 0 {
		if err := w.contacts.confirm(ctx); err != nil {
			return command.Receipt{}, err
		}
	}
	saved, err := w.context.Save(ctx)
	if err != nil {
		return command.Receipt{}, err
	}
	w.context.Reset()
	w.requests, w.audits = nil, nil
	for _, change := range changes {
		change.contact.Committed(change.commit)
		id := change.contact.ID().String()
		for _, o := range saved {
			if o.ID == id {
				change.etag = o.ETag
			}
		}
	}
	return command.Receipt{ETag: w.contacts.etag(), SessionToken: w.SessionToken()}, nil
}

// pendingChange is a contact with what its commit stores.
type pendingChange struct {
	*trackedContact
	commit contact.Commit
}

// collect puts the events and then the state of each changed contact into the
// transaction. What refuses first decides the fault: a request that was answered
// before the contact's ETag, and that before the audit entry of its version.
func (w *UnitOfWork) collect(ctx context.Context) ([]pendingChange, error) {
	if err := w.createAll(w.requests); err != nil {
		return nil, err
	}
	var changes []pendingChange
	for _, tracked := range w.contacts.tracked {
		commit, changed := tracked.contact.Pending()
		if !changed {
			continue
		}
		for _, e := range commit.Events {
			if err := w.publisher.Publish(ctx, w.events, e); err != nil {
				return nil, fmt.Errorf("commit %s: %w", tracked.contact, err)
			}
			if !w.context.Contains(e.Metadata().ID.String()) {
				return nil, fmt.Errorf("commit %s: no handler has put %s into the outbox, it would be lost", tracked.contact, e.Action())
			}
		}
		if err := w.contacts.store(ctx, tracked, commit); err != nil {
			return nil, fmt.Errorf("commit %s: %w", tracked.contact, err)
		}
		changes = append(changes, pendingChange{trackedContact: tracked, commit: commit})
	}
	return changes, w.createAll(w.audits)
}

func (w *UnitOfWork) createAll(objects []DataObject) error {
	for _, o := range objects {
		if err := w.context.Create(o); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	return nil
}
