package cosmos

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/store/cosmos/internal/store"
)

// Outbox is the transactional outbox for callers that have documents but no aggregates. The
// documents and events of a Batch are stored in one transaction. It is safe for concurrent use.
type Outbox struct {
	container *azcosmos.ContainerClient
	keyMember string
	maxKey    int
	options   Options
}

// OutboxOptions tune an outbox. Nil and zero values are the defaults.
type OutboxOptions struct {
	// Options, except the lifetimes of deleted aggregates, requests and audit entries, which
	// are not used.
	Options
	// KeyMember is the member of all documents for the partition key: the container's
	// partition key path without the slash. Default "partitionKey". Any other name must also
	// be set in the relay's event contract.
	KeyMember string
	// MaxKeyLength is the longest key of a batch with events, in characters: Commit refuses others with
	// fault.Invalid (code "key_too_long"), because the relay would park their events. Default 128, the longest session
	// id of Service Bus; negative for no limit, with other brokers.
	MaxKeyLength int
}

// NewOutbox returns the outbox of a container.
func NewOutbox(container *azcosmos.ContainerClient, o *OutboxOptions) (*Outbox, error) {
	if container == nil {
		return nil, errors.New("cosmos: an outbox needs a container")
	}
	if o == nil {
		o = &OutboxOptions{}
	}
	options, err := withDefaults(&o.Options)
	if err != nil {
		return nil, err
	}
	return &Outbox{container: container, keyMember: cmp.Or(o.KeyMember, PartitionKeyPath[1:]), maxKey: cmp.Or(o.MaxKeyLength, 128), options: options}, nil
}

// Verify checks that the container exists, has the partition key of KeyMember, and lets events expire.
// It waits some seconds if the service is still creating the container. Call it at the start. Without
// it, Commit reports the first two, and events in a container without a TTL never expire. If the
// account does not answer, the error is fault.Unavailable or fault.Throttled.
func (o *Outbox) Verify(ctx context.Context) error {
	if o == nil || o.container == nil {
		return errors.New("cosmos: the outbox is not made by NewOutbox")
	}
	return ContainerSpec{ID: o.container.ID(), PartitionKeyPath: "/" + o.keyMember, TTL: true}.await(ctx, o.container, time.Now().Add(creationWait))
}

// Batch begins a transaction under a partition key. Commit reports all errors, also that of an
// empty key.
func (o *Outbox) Batch(key string) *Batch {
	b := &Batch{key: key}
	switch {
	case o == nil || o.container == nil:
		b.fail("batch", errors.New("the outbox is not made by NewOutbox"))
	case key == "":
		b.fail("batch", errors.New("the partition key is empty"))
	default:
		b.keyMember, b.maxKey = o.keyMember, o.maxKey
		b.documents = newContainerContext(o.container, o.options, store.Session{})
		b.documents.keyMember = o.keyMember
	}
	return b
}
