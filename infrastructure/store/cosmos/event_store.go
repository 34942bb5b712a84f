package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
)

// EventStore reads and replaces stored events. It is safe for concurrent use.
type EventStore struct {
	container *azcosmos.ContainerClient
	decoder   document.EventDecoder
}

// NewEventStore returns the events of container that decoder accepts.
func NewEventStore(container *azcosmos.ContainerClient, decoder document.EventDecoder) (EventStore, error) {
	if container == nil {
		return EventStore{}, errors.New("cosmos: an event store needs a container")
	}
	return EventStore{container, decoder}, nil
}

// Event implements relay.Stored by a point read, or by a query of the partition if the contract takes the id of
// events from another member than the document's id. It may miss a change that was just made by another client,
// because the session token of that client is not known here.
func (s EventStore) Event(ctx context.Context, key, id string) ([]byte, error) {
	what := "read event " + id + " of key " + key
	if member := s.decoder.IDMember(); member != "id" {
		found, err := s.ofPartition(ctx, what, key, ` AND c["`+member+`"] = @id`, azcosmos.QueryParameter{Name: "@id", Value: id})
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0:
			return nil, fault.Missing("event", id)
		}
		return found[0], nil
	}
	reply, err := s.container.ReadItem(ctx, keyValue(key), id, nil)
	if err != nil {
		return nil, store.AsFault(what, err)
	}
	return reply.Value, nil
}

// ofPartition returns the events of a key that fulfil a condition.
func (s EventStore) ofPartition(ctx context.Context, what, key, condition string, parameters ...azcosmos.QueryParameter) (found [][]byte, err error) {
	member, types := s.decoder.Types()
	pager := s.container.NewQueryItemsPager(`SELECT * FROM c WHERE ARRAY_CONTAINS(@types, c["`+member+`"])`+condition, keyValue(key),
		&azcosmos.QueryOptions{QueryParameters: append(parameters, azcosmos.QueryParameter{Name: "@types", Value: types})})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, store.AsFault(what, err)
		}
		found = append(found, page.Items...)
	}
	return found, nil
}

// Editable returns a document without the members that the store adds, and its ETag.
func (s EventStore) Editable(document []byte) (clean []byte, version string, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(document, &members); err != nil {
		return nil, "", fmt.Errorf("the stored document: %w", err)
	}
	if err := json.Unmarshal(members["_etag"], &version); err != nil {
		return nil, "", fmt.Errorf("the ETag of the stored document: %w", err)
	}
	for _, name := range storeMembers {
		delete(members, name)
	}
	clean, err = json.Marshal(members)
	return clean, version, err
}

// Replace replaces an event if it still has the ETag version; its lifetime starts again. Faults:
// PreconditionFailed, NotFound, and Conflict with the code "forbidden" for an identity that may
// not write.
func (s EventStore) Replace(ctx context.Context, key, id string, document []byte, version string) error {
	etag := azcore.ETag(version)
	if s.decoder.IDMember() != "id" {
		var named struct{ ID string }
		if err := json.Unmarshal(document, &named); err != nil {
			return fmt.Errorf("replace event %s of key %s: %w", id, key, err)
		}
		id = named.ID
	}
	_, err := s.container.ReplaceItem(ctx, keyValue(key), id, document, &azcosmos.ItemOptions{IfMatchEtag: &etag})
	if forbidden(err) {
		return fault.Wrap(fault.Conflict, "forbidden",
			"this process may not write events: give its identity the role Cosmos DB Built-in Data Contributor on the container, or correct the document with another tool", err)
	}
	return store.AsFault("replace event "+id+" of key "+key, err)
}

// forbidden reports whether the identity of this process lacks a right, which no other region grants.
func forbidden(err error) bool {
	reply, ok := errors.AsType[*azcore.ResponseError](err)
	return ok && reply.StatusCode == http.StatusForbidden && store.RegionOf(err) == ""
}
