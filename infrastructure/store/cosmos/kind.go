package cosmos

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"

	"feedbox/application/mediator"
	"feedbox/domain/aggregate"
	"feedbox/domain/event"
	"feedbox/infrastructure/store/document"
)

// withDefaults returns a checked copy of k, with the lifetime of o where it has none.
func withDefaults[A aggregate.Aggregate](k *document.Kind[A], o *Options) (*document.Kind[A], error) {
	given, err := k.Checked()
	if err != nil {
		return nil, err
	}
	if given.DeletedTTL > maxTTL {
		return nil, fmt.Errorf("cosmos: DeletedTTL of kind %s is longer than the store can count, %s", given.Type, maxTTL)
	}
	given.DeletedTTL = cmp.Or(given.DeletedTTL, o.DeletedTTL)
	return given, nil
}

// documentOf returns the document of a. A deleted aggregate expires, any other never.
func documentOf[A aggregate.Aggregate](k *document.Kind[A], a A, commit aggregate.Commit) (DataObject, error) {
	data, err := k.Data(a, commit)
	if err != nil {
		return DataObject{}, err
	}
	ttl := never
	if a.Deleted() {
		ttl = seconds(k.DeletedTTL)
	}
	return DataObject{ID: a.ID().String(), PartitionKey: partitionKeyOf(a.ID()), Type: k.Type, Data: data, TTL: ttl}, nil
}

// aggregateOf returns the aggregate that was read for id. A document of another type is
// none.
func aggregateOf[A aggregate.Aggregate](k *document.Kind[A], id uuid.UUID, o DataObject) (a A, err error) {
	if o.Type != k.Type {
		return a, k.NotFound(id)
	}
	return k.Restore(id, o.Data)
}

// eventOutbox puts domain events into the transaction of one unit of work. They expire.
type eventOutbox struct {
	documents *ContainerContext
	encode    func(e event.Event, traceparent string) ([]byte, error) // document.Kind.EventData
}

var _ mediator.Outbox = (*eventOutbox)(nil)

// Add implements mediator.Outbox.
func (b *eventOutbox) Add(ctx context.Context, e event.Event) error {
	o, err := b.document(e, b.documents.options.Traceparent(ctx))
	if err != nil {
		return err
	}
	return b.documents.Create(o)
}

func (b *eventOutbox) document(e event.Event, traceparent string) (DataObject, error) {
	data, err := b.encode(e, traceparent)
	if err != nil {
		return DataObject{}, err
	}
	meta := e.Metadata()
	return DataObject{ID: meta.ID.String(), PartitionKey: partitionKeyOf(meta.AggregateID), Type: document.TypeEvent, Data: data, TTL: seconds(b.documents.options.EventTTL)}, nil
}
