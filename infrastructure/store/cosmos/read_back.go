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
// The earlier attempt stored them if the document that refused the operations is equal to the
// one to be stored. (For an event the id alone is proof; the comparison makes sure.) All others
// were stored with it, because a transaction is stored as a whole. A document that was changed
// since gets an empty ETag, otherwise a client could overwrite a state it has not seen.
func (c *ContainerContext) readBack(ctx context.Context, ops []operation, failed int) (saved []DataObject, own bool, err error) {
	ctx, cancel := c.options.WithAttemptTimeout(ctx)
	defer cancel()
	failed = max(failed, 0) // a point write has one operation
	saved = make([]DataObject, len(ops))
	for i, op := range ops {
		stored, err := c.readPrimaryRaw(ctx, op.object.PartitionKey, op.object.ID)
		gone := fault.Is(err, fault.NotFound)
		if err != nil && !gone {
			return nil, false, err
		}
		applied := op.applied(stored.ResourceBody, gone)
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
		for _, name := range []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"} {
			delete(members, name)
		}
	}
	return reflect.DeepEqual(there, sent)
}
