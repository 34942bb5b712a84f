package cosmos

import (
	"context"
	"encoding/json"
	"reflect"

	"feedbox/domain/fault"
)

// readBack finds out whether the operations were stored by an earlier attempt,
// and with which ETags.
//
// They were, if the document that refused them is exactly the one to be stored:
// its id says so already for an event, its content makes sure. As a transaction
// is stored as a whole, all the others were stored with it. A document that was
// changed by somebody else since gets an empty ETag: handing out the newer one
// would let a client overwrite what it has not seen.
func (c *ContainerContext) readBack(ctx context.Context, ops []operation, failed int) (saved []DataObject, own bool, err error) {
	ctx, cancel := c.withAttemptTimeout(ctx)
	defer cancel()
	failed = max(failed, 0) // a point write has one operation
	saved = make([]DataObject, len(ops))
	for i, op := range ops {
		stored, err := c.readPrimaryRaw(ctx, op.object.PartitionKey, op.object.ID)
		gone := fault.Is(err, fault.NotFound)
		if err != nil && !gone {
			return nil, false, err
		}
		applied := op.leaves(stored.ResourceBody, gone)
		if i == failed && !applied {
			return nil, false, nil
		}
		saved[i] = op.saved("")
		if applied {
			saved[i].ETag = stored.ETag
		}
	}
	return saved, true, nil
}

// leaves reports whether a document, or that there is none, is what the operation leaves.
// What the store adds does not count, nor how it spaces and escapes the rest.
func (op operation) leaves(stored []byte, gone bool) bool {
	if gone {
		return op.verb == verbDelete
	}
	var there, sent map[string]any
	if json.Unmarshal(stored, &there) != nil || json.Unmarshal(op.body, &sent) != nil {
		return false // also what was to be deleted and is there
	}
	for _, members := range []map[string]any{there, sent} {
		for _, name := range []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"} {
			delete(members, name)
		}
	}
	return reflect.DeepEqual(there, sent)
}
