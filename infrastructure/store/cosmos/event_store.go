package cosmos

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

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

// Event implements relay.Stored by a point read. It may miss a change that was just made by
// another client, because the session token of that client is not known here.
func (s EventStore) Event(ctx context.Context, key, id string) ([]byte, error) {
	reply, err := s.container.ReadItem(ctx, keyValue(key), id, nil)
	if err != nil {
		return nil, store.AsFault("read event "+id+" of key "+key, err)
	}
	return reply.Value, nil
}
