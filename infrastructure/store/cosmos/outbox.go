package cosmos

import (
	"cmp"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/store/cosmos/internal/store"
)

// Outbox is the transactional outbox for whoever has documents and no aggregates: what is
// put and what is emitted under one partition key is stored in one transaction.
//
//	receipt, err := outbox.Batch("customer-7").
//		Put(invoice, "").
//		Emit("InvoiceIssuedEvent", issued).
//		Commit(ctx)
//
// It is safe for concurrent use.
type Outbox struct {
	container *azcosmos.ContainerClient
	keyMember string
	options   Options
}

// OutboxOptions tune an outbox. Nil and zero values are the defaults.
type OutboxOptions struct {
	// Options of which the lifetimes of deleted aggregates, requests and audit entries do
	// not count.
	Options
	// KeyMember is the member of all documents that holds the partition key: the
	// container's partition key path without the slash. Default "partitionKey". Another one
	// goes into the relay's event contract, too.
	KeyMember string
}

// NewOutbox returns the outbox of a container.
func NewOutbox(container *azcosmos.ContainerClient, o *OutboxOptions) (*Outbox, error) {
	if container == nil {
		return nil, errors.New("cosmos: an outbox needs a container")
	}
	if o == nil {
		o = &OutboxOptions{}
	}
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Outbox{container: container, keyMember: cmp.Or(o.KeyMember, PartitionKeyPath[1:]), options: options}, nil
}

// Batch begins a transaction under a partition key. What is wrong with it, also with the
// key, Commit tells.
func (o *Outbox) Batch(key string) *Batch {
	b := &Batch{key: key}
	switch {
	case o == nil || o.container == nil:
		b.fail("batch", errors.New("the outbox is not made by NewOutbox"))
	case key == "":
		b.fail("batch", errors.New("the partition key is empty"))
	default:
		b.keyMember = o.keyMember
		b.documents = newContainerContext(o.container, o.options, store.Session{})
	}
	return b
}
