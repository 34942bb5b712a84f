package cosmos

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/unitofwork"
)

// UnitsOfWork begins units of work on the aggregates of one kind in one container, which
// may hold other kinds, too. It is safe for concurrent use.
type UnitsOfWork[A aggregate.Aggregate] = unitofwork.UnitsOfWork[A]

// NewUnitsOfWork returns units of work on the aggregates of kind in container, whose events
// go through publisher; nil puts each into the outbox.
func NewUnitsOfWork[A aggregate.Aggregate](container *azcosmos.ContainerClient, kind *document.Kind[A], publisher unitofwork.Publisher, o *Options) (*UnitsOfWork[A], error) {
	if container == nil {
		return nil, errors.New("cosmos: units of work need a container")
	}
	options, err := withDefaults(o)
	if err == nil && kind != nil {
		err = checkTTL("DeletedTTL of kind "+kind.Type, kind.DeletedTTL)
	}
	if err != nil {
		return nil, err
	}
	return unitofwork.New(kind, publisher, options, func(kind *document.Kind[A], o *Options, sessionToken string) (unitofwork.Transaction, error) {
		token, err := store.ParseSession(sessionToken)
		return &transaction[A]{documents: newContainerContext(container, *o, token), kind: kind}, err
	})
}

// transaction implements unitofwork.Transaction in one container.
type transaction[A aggregate.Aggregate] struct {
	documents ContainerContext
	kind      *document.Kind[A]
	requests  []DataObject // notes that precede the aggregate in the batch
	audits    []DataObject // notes that follow it
}

// Single implements unitofwork.Transaction.
func (*transaction[A]) Single() bool { return false }

// SessionToken implements unitofwork.Transaction.
func (t *transaction[A]) SessionToken() string { return t.documents.session.String() }

// Read implements unitofwork.Transaction. It asks any replica first. If that answer would
// refuse the command, it asks the primary, because the replica may lag.
func (t *transaction[A]) Read(ctx context.Context, id uuid.UUID, ifMatch []string) (unitofwork.State, error) {
	key := partitionKeyOf(id)
	o, err := t.documents.read(ctx, key, id.String())
	if fault.Is(err, fault.NotFound) || err == nil && !unitofwork.Matches(ifMatch, string(o.ETag)) {
		o, err = t.documents.readPrimary(ctx, key, id.String())
	}
	if err != nil {
		return unitofwork.State{}, err
	}
	return t.state(id, o)
}

// state returns the state that a document holds. A document of another type is not found.
func (t *transaction[A]) state(id uuid.UUID, o DataObject) (unitofwork.State, error) {
	if o.Type != t.kind.Type {
		return unitofwork.State{}, t.kind.NotFound(id)
	}
	return unitofwork.State{ETag: string(o.ETag), Data: o.Data}, nil
}

// Save implements unitofwork.Transaction. The order of the documents decides the fault if
// several are refused: a request that was answered before the aggregate's ETag, and that
// before the audit entry of its version.
func (t *transaction[A]) Save(ctx context.Context, changes []*unitofwork.Change) error {
	t.documents.Reset()
	if err := t.createAll(t.requests); err != nil {
		return err
	}
	for _, c := range changes {
		var err error
		if c.Unchanged {
			err = t.confirm(ctx, c)
		} else if err = t.store(ctx, c); err != nil {
			err = fmt.Errorf("commit %s %s: %w", t.kind.Noun, c.ID, err)
		}
		if err != nil {
			return err
		}
	}
	if err := t.createAll(t.audits); err != nil {
		return err
	}
	saved, err := t.documents.Save(ctx)
	if err != nil {
		return err
	}
	t.requests, t.audits = nil, nil
	for _, c := range changes {
		for _, o := range saved {
			if o.ID == c.ID.String() {
				c.After.ETag = string(o.ETag)
			}
		}
	}
	return nil
}

func (t *transaction[A]) createAll(objects []DataObject) error {
	for _, o := range objects {
		if err := t.documents.Create(o); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	return nil
}

// store adds the events of a change, the aggregate, and its tombstone if it was deleted.
func (t *transaction[A]) store(ctx context.Context, c *unitofwork.Change) error {
	for _, e := range c.Events {
		if err := t.documents.Create(eventObject(e, &t.documents.options)); err != nil {
			return err
		}
	}
	o := aggregateObject(t.kind.Type, c)
	if c.Commit.Create {
		return t.documents.Create(o)
	}
	o.ETag = azcore.ETag(c.Before.ETag)
	if err := t.documents.Update(o); err != nil {
		return err
	}
	return t.bury(ctx, c)
}

// aggregateObject returns the document of an aggregate. A deleted aggregate expires, any other
// never does.
func aggregateObject(kind string, c *unitofwork.Change) DataObject {
	ttl := never
	if c.Deleted {
		ttl = seconds(c.DeletedTTL)
	}
	return DataObject{ID: c.ID.String(), PartitionKey: partitionKeyOf(c.ID), Type: kind, Data: c.Data, TTL: ttl}
}

// eventObject returns the document of an event, which expires.
func eventObject(e unitofwork.Event, o *Options) DataObject {
	return DataObject{ID: e.ID, PartitionKey: e.Key, Type: document.TypeEvent, Data: e.Data, TTL: seconds(o.EventTTL)}
}

// confirm checks that the primary has the aggregate as it was read, because a replica that
// lags may have answered that read.
func (t *transaction[A]) confirm(ctx context.Context, c *unitofwork.Change) error {
	o, err := t.documents.readPrimary(ctx, partitionKeyOf(c.ID), c.ID.String())
	switch {
	case fault.Is(err, fault.NotFound):
		return t.kind.NotFound(c.ID)
	case err != nil:
		return err
	case string(o.ETag) != c.Before.ETag:
		return t.kind.ChangedByAnother()
	}
	return nil
}
