package cosmos

import (
	"context"
	"encoding/json"
	"reflect"

	"feedbox/domain/fault"
)

// readBack reports whether an earlier attempt stored the operations, and returns the documents
// with their ETags.
//
// The earlier attempt stored them if their first event is there, because its id is never reused
// and a transaction is stored as a whole. (The comparison makes sure.) A document that was changed
// since gets an empty ETag, otherwise a client could overwrite a state it has not seen.
//
// Without an event, another client may have stored an equal document or deleted the same one. So
// all operations must have been applied.
func (c *ContainerContext) readBack(ctx context.Context, ops []operation, failed int) (saved []DataObject, own bool, err error) {
	ctx, cancel := c.options.WithAttemptTimeout(ctx)
	defer cancel()
	failed = max(failed, 0) // a point write has one operation
	proof := ops[0].isEvent()
	saved = make([]DataObject, len(ops))
	for i, op := range ops {
		stored, err := c.readPrimaryRaw(ctx, op.object.PartitionKey, op.object.ID)
		gone := fault.Is(err, fault.NotFound)
		if err != nil && !gone {
			return nil, false, err
		}
		applied := op.applied(stored.ResourceBody, gone)
		if !applied && (i == failed || !proof) {
			return nil, false, nil
		}
		saved[i] = op.saved("")
		if applied {
			saved[i].ETag = stored.ETag
		}
	}
	return saved, true, nil
}

// applied reports whether a stored document, or its absence, is the result of the operation. The
// comparison ignores the members that the store adds, spacing and escapes.
func (op operation) applied(stored []byte, gone bool) bool {
	if gone {
		return op.verb == verbDelete
	}
	var there, sent map[string]any
	if json.Unmarshal(stored, &there) != nil || json.Unmarshal(op.body, &sent) != nil {
		return false // also a document that was to be deleted
	}
	for _, members := range []map[string]any{there, sent} {
		for _, name := range storeMembers {
			delete(members, name)
		}
	}
	return reflect.DeepEqual(there, sent)
}

// storeMembers are the members that the store adds to a document. Other names that begin with _ are the writer's.
var storeMembers = []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"}
