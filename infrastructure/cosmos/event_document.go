package cosmos

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/contact"
	"feedbox/domain/event"
)

// eventSchemaVersion is the version of the shapes in this file. It rises when a
// member changes its meaning or goes away; readers must accept new members.
const eventSchemaVersion = 1

// eventData is what the data of every event ends with.
type eventData struct {
	ContactID        uuid.UUID `json:"contactId"`
	Action           string    `json:"action"`
	ID               uuid.UUID `json:"id"`
	CreatedAt        time.Time `json:"createdAt"`
	AggregateVersion int64     `json:"aggregateVersion"`
	Sequence         int64     `json:"sequence"`
	SchemaVersion    int       `json:"schemaVersion"`
	Traceparent      string    `json:"traceparent,omitempty"`
}

// The data of each event. An event about a value that may be absent says null
// when it is.
type (
	createdData struct {
		Contact contactData `json:"contact"`
		eventData
	}
	nameUpdatedData struct {
		Name nameData `json:"name"`
		eventData
	}
	descriptionUpdatedData struct {
		Description *string `json:"description"`
		eventData
	}
	emailUpdatedData struct {
		Email *string `json:"email"`
		eventData
	}
	companyUpdatedData struct {
		Company companyData `json:"company"`
		eventData
	}
	deletedData struct {
		eventData
	}
)

// encodeEvent returns the document of an event, which expires after ttl.
// Traceparent (W3C Trace Context) may be empty.
func encodeEvent(e event.Event, ttl time.Duration, traceparent string) (DataObject, error) {
	meta := e.Metadata()
	data, err := eventPayload(e, eventData{
		ContactID:        meta.AggregateID,
		Action:           e.Action(),
		ID:               meta.ID,
		CreatedAt:        meta.CreatedAt,
		AggregateVersion: meta.AggregateVersion,
		Sequence:         meta.Sequence,
		SchemaVersion:    eventSchemaVersion,
		Traceparent:      traceparent,
	})
	if err != nil {
		return DataObject{}, err
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return DataObject{}, fmt.Errorf("encode event %s: %w", meta.ID, err)
	}
	key := partitionKeyOf(meta.AggregateID)
	return DataObject{ID: meta.ID.String(), PartitionKey: key, Type: typeDomainEvent, Data: raw, TTL: seconds(ttl)}, nil
}

func eventPayload(e event.Event, common eventData) (any, error) {
	switch e := e.(type) {
	case contact.ContactCreatedEvent:
		created := newContactData(e.Contact)
		created.RequestHash = "" // concerns nobody but the store
		return createdData{created, common}, nil
	case contact.ContactNameUpdatedEvent:
		return nameUpdatedData{nameData{FirstName: e.Name.First(), LastName: e.Name.Last()}, common}, nil
	case contact.ContactDescriptionUpdatedEvent:
		return descriptionUpdatedData{textOrNull(e.Description.Text()), common}, nil
	case contact.ContactEmailUpdatedEvent:
		return emailUpdatedData{textOrNull(e.Email.Address()), common}, nil
	case contact.ContactCompanyUpdatedEvent:
		return companyUpdatedData{companyData(e.Company.Fields()), common}, nil
	case contact.ContactDeletedEvent:
		return deletedData{common}, nil
	default:
		return nil, fmt.Errorf("encode event %s: no shape is defined for %s (%T)", common.ID, common.Action, e)
	}
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
