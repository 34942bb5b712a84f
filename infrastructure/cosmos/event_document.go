package cosmos

import (
	"context"
	"fmt"
	"time"

	"feedbox/application/mediator"
	"feedbox/domain/event"
	"feedbox/infrastructure/cosmos/internal/jsontext"
)

// eventSchemaVersion is the version of the shapes of events. It rises when a
// member changes its meaning or goes away; readers must accept new members.
const eventSchemaVersion = 1

// eventMembers are the members of an event's data that this package writes.
var eventMembers = []string{defaultIDMember, "action", "id", "createdAt", "aggregateVersion", "sequence", "schemaVersion", "traceparent"}

// encodeEvent returns the document of an event, which expires after ttl. What happened is
// written by encode, then come the members that all events have. Traceparent (W3C Trace
// Context) may be empty.
func encodeEvent(e event.Event, encode EventEncoder, idMember string, ttl time.Duration, traceparent string) (DataObject, error) {
	meta := e.Metadata()
	data, err := encode(append(make([]byte, 0, dataRoom), '{'), e)
	if err != nil {
		return DataObject{}, fmt.Errorf("encode event %s (%s): %w", meta.ID, e.Action(), err)
	}
	w := jsontext.Extend(data)
	w.UUID(idMember, meta.AggregateID)
	w.Text("action", e.Action())
	w.UUID("id", meta.ID)
	w.Time("createdAt", meta.CreatedAt)
	w.Integer("aggregateVersion", meta.AggregateVersion)
	w.Integer("sequence", meta.Sequence)
	w.Integer("schemaVersion", eventSchemaVersion)
	w.TextIfAny("traceparent", traceparent)
	w.End()
	if data, err = w.Done(); err != nil {
		return DataObject{}, fmt.Errorf("encode event %s: %w", meta.ID, err)
	}
	key := partitionKeyOf(meta.AggregateID)
	return DataObject{ID: meta.ID.String(), PartitionKey: key, Type: typeDomainEvent, Data: data, TTL: seconds(ttl)}, nil
}

// eventOutbox puts domain events into the transaction of one unit of work.
type eventOutbox struct {
	documents *ContainerContext
	encoders  map[string]EventEncoder
	idMember  string
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
	encode := b.encoders[e.Action()]
	if encode == nil {
		return DataObject{}, fmt.Errorf("encode event %s: the kind has no encoder for %s (%T)", e.Metadata().ID, e.Action(), e)
	}
	return encodeEvent(e, encode, b.idMember, b.documents.options.EventTTL, traceparent)
}
