package cosmos

import (
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
)

// ContainerContext collects operations on documents of one partition key and saves them as one
// transaction. It serves one goroutine.
type ContainerContext struct {
	container *azcosmos.ContainerClient
	options   Options
	session   store.Session
	keyMember string // of the container's partition key path; "" for PartitionKeyPath

	partitionKey string // of all operations; empty while there are none
	operations   []operation
}

type verb uint8

const (
	verbCreate verb = iota
	verbReplace
	verbDelete
)

// operation is one change of one document.
type operation struct {
	verb   verb
	object DataObject
	body   []byte // the document as it is sent; nil for a deletion
}

func newContainerContext(container *azcosmos.ContainerClient, options Options, session store.Session) ContainerContext {
	return ContainerContext{container: container, options: options, session: session}
}

// Create adds the creation of o. If the id exists, Save fails with fault.Conflict.
func (c *ContainerContext) Create(o DataObject) error { return c.track(verbCreate, o, nil) }

// Update adds the replacement of the stored document by o. If the stored ETag is not that of o,
// Save fails with fault.PreconditionFailed.
func (c *ContainerContext) Update(o DataObject) error { return c.track(verbReplace, o, nil) }

// Reset removes all operations.
func (c *ContainerContext) Reset() {
	c.partitionKey, c.operations = "", nil
}

// Contains reports whether there is an operation on the document with this id.
func (c *ContainerContext) Contains(id string) bool {
	return slices.ContainsFunc(c.operations, func(op operation) bool { return op.object.ID == id })
}

// track adds an operation. body is the document to send if it has a form of its own; o then has
// only its id, partition key and ETag. If body is nil, o is encoded.
func (c *ContainerContext) track(v verb, o DataObject, body []byte) error {
	switch {
	case o.ID == "" || o.PartitionKey == "":
		return fmt.Errorf("track document %q: it needs an id and a partition key", o.ID)
	case c.partitionKey != "" && o.PartitionKey != c.partitionKey:
		return fmt.Errorf("track document %s: its partition key is %s, the transaction is in %s; use a unit of work for each",
			o.ID, o.PartitionKey, c.partitionKey)
	case c.Contains(o.ID):
		return fmt.Errorf("track document %s: it has an operation in this transaction already", o.ID)
	case v != verbCreate && o.ETag == "":
		return fmt.Errorf("track document %s: it has no ETag, so it cannot be replaced or deleted safely", o.ID)
	}
	if v != verbDelete && body == nil {
		var err error
		if body, err = o.encode(); err != nil {
			return err
		}
	}
	c.partitionKey = o.PartitionKey
	c.operations = append(c.operations, operation{verb: v, object: o, body: body})
	return nil
}

// isEvent reports whether op creates an event. Its id is never reused.
func (op operation) isEvent() bool { return op.object.Type == document.TypeEvent }

// ordered returns the operations in the order in which they are sent: event creates first, the
// others as they were added. A batch is executed in order and stops at its first failure, so a
// conflict on a stored event is reported before any other refusal.
func (c *ContainerContext) ordered() []operation {
	slices.SortStableFunc(c.operations, func(a, b operation) int {
		switch {
		case a.isEvent() == b.isEvent():
			return 0
		case a.isEvent():
			return -1
		default:
			return 1
		}
	})
	return c.operations
}
