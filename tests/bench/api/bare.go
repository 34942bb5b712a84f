package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"
)

// The stored documents in their simplest form.
type bareDocument struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Type         string `json:"type"`
	Data         any    `json:"data"`
	TTL          int    `json:"ttl"`
}

type bareName struct {
	FirstName string `json:"firstName"`
	LastName  string `json:"lastName"`
}

type bareCompany struct {
	CompanyName string `json:"companyName"`
	Street      string `json:"street"`
	HouseNumber string `json:"houseNumber"`
	PostalCode  string `json:"postalCode"`
	City        string `json:"city"`
	Country     string `json:"country"`
}

type bareContact struct {
	ID          string      `json:"id"`
	Name        bareName    `json:"name"`
	Description string      `json:"description,omitempty"`
	Email       string      `json:"email,omitempty"`
	Company     bareCompany `json:"company"`
	CreatedAt   time.Time   `json:"createdAt"`
	ModifiedAt  *time.Time  `json:"modifiedAt,omitempty"`
	Deleted     bool        `json:"deleted"`
	Version     int64       `json:"version"`
	Sequence    int64       `json:"sequence"`
}

type bareEvent struct {
	ID               string    `json:"id"`
	ContactID        string    `json:"contactId"`
	Action           string    `json:"action"`
	CreatedAt        time.Time `json:"createdAt"`
	Name             bareName  `json:"name"`
	AggregateVersion int64     `json:"aggregateVersion"`
	Sequence         int64     `json:"sequence"`
	SchemaVersion    int       `json:"schemaVersion"`
	Traceparent      string    `json:"traceparent"`
}

// traceparent replaces the trace of the request, which the API writes into each event, so
// that the documents of both sides have the same members and the same length.
const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// bareUpdates updates one contact after the other.
func bareUpdates(container *azcosmos.ContainerClient, ids []uuid.UUID) worker {
	n := 0
	return func(ctx context.Context) error {
		n++
		return bareUpdate(ctx, container, ids[n%len(ids)].String(), bareName{FirstName: fmt.Sprint("Bare ", n), LastName: "Doe"})
	}
}

// bareUpdate reads a contact, changes its name, and stores it with an event in one
// transactional batch, without layers and checks.
func bareUpdate(ctx context.Context, container *azcosmos.ContainerClient, id string, name bareName) error {
	key := azcosmos.NewPartitionKeyString(id)
	reply, err := container.ReadItem(ctx, key, id, nil)
	if err != nil {
		return err
	}
	var c bareContact
	if err := json.Unmarshal(reply.Value, &bareDocument{Data: &c}); err != nil {
		return err
	}
	now := time.Now()
	c.Name = name
	c.ModifiedAt, c.Version, c.Sequence = &now, c.Version+1, c.Sequence+1
	body, err := json.Marshal(bareDocument{ID: id, PartitionKey: id, Type: "contact", Data: c, TTL: -1})
	if err != nil {
		return err
	}
	e := bareEvent{
		ID: uuid.NewString(), ContactID: id, Action: "ContactNameUpdatedEvent", CreatedAt: now,
		Name: c.Name, AggregateVersion: c.Version, Sequence: c.Sequence,
		SchemaVersion: 1, Traceparent: traceparent,
	}
	eventBody, err := json.Marshal(bareDocument{ID: e.ID, PartitionKey: id, Type: "domainEvent", Data: e, TTL: 864000})
	if err != nil {
		return err
	}
	batch := container.NewTransactionalBatch(key)
	batch.CreateItem(eventBody, nil)
	batch.ReplaceItem(id, body, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &reply.ETag})
	stored, err := container.ExecuteTransactionalBatch(ctx, batch, nil)
	if err != nil {
		return err
	}
	if !stored.Success {
		return fmt.Errorf("the batch for %s was refused", id)
	}
	return nil
}
