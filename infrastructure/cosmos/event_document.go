package cosmos

import (
	"context"
	"fmt"
	"time"

	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/event"
)

// eventSchemaVersion is the version of the shapes in this file. It rises when a
// member changes its meaning or goes away; readers must accept new members.
const eventSchemaVersion = 1

// encodeEvent returns the document of an event, which expires after ttl.
// Traceparent (W3C Trace Context) may be empty.
func encodeEvent(e event.Event, ttl time.Duration, traceparent string) (DataObject, error) {
	meta := e.Metadata()
	w := newJSONWriter(dataRoom)
	known := true
	w.object(func() {
		known = writeWhatHappened(w, e)
		w.uuid("contactId", meta.AggregateID)
		w.text("action", e.Action())
		w.uuid("id", meta.ID)
		w.time("createdAt", meta.CreatedAt)
		w.integer("aggregateVersion", meta.AggregateVersion)
		w.integer("sequence", meta.Sequence)
		w.integer("schemaVersion", eventSchemaVersion)
		w.textIfAny("traceparent", traceparent)
	})
	if !known {
		return DataObject{}, fmt.Errorf("encode event %s: no shape is defined for %s (%T)", meta.ID, e.Action(), e)
	}
	data, err := w.done()
	if err != nil {
		return DataObject{}, fmt.Errorf("encode event %s: %w", meta.ID, err)
	}
	key := partitionKeyOf(meta.AggregateID)
	return DataObject{ID: meta.ID.String(), PartitionKey: key, Type: typeDomainEvent, Data: data, TTL: seconds(ttl)}, nil
}

// writeWhatHappened writes the members that only events of this type have, and
// reports whether it knows the type. An event about a value that may be absent says
// null when it is.
func writeWhatHappened(w *jsonWriter, e event.Event) bool {
	switch e := e.(type) {
	case contact.ContactCreatedEvent:
		created := e.Contact
		created.RequestHash = "" // concerns nobody but the store
		w.member("contact")
		writeContact(w, created)
	case contact.ContactNameUpdatedEvent:
		writeName(w, e.Name.First(), e.Name.Last())
	case contact.ContactDescriptionUpdatedEvent:
		w.textOrNull("description", e.Description.Text())
	case contact.ContactEmailUpdatedEvent:
		w.textOrNull("email", e.Email.Address())
	case contact.ContactCompanyUpdatedEvent:
		writeCompany(w, e.Company.Fields())
	case contact.ContactDeletedEvent:
	default:
		return false
	}
	return true
}

// EventRepository puts domain events into the transaction of one unit of work.
type EventRepository struct {
	documents *ContainerContext
}

var _ mediator.Outbox = (*EventRepository)(nil)

// Add implements mediator.Outbox.
func (r *EventRepository) Add(ctx context.Context, e event.Event) error {
	o, err := encodeEvent(e, r.documents.options.EventTTL, r.documents.options.Traceparent(ctx))
	if err != nil {
		return err
	}
	return r.documents.Create(o)
}
