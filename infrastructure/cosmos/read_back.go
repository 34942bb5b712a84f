package cosmos

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

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
			saved[i].ETag = etagOf(stored)
		}
	}
	return saved, true, nil
}

// leaves reports whether a document, or that there is none, is what the operation leaves.
func (op operation) leaves(stored []byte, gone bool) bool {
	if gone {
		return op.verb == verbDelete
	}
	if op.whole {
		return sameJSON(withoutSystemMembers(stored), op.body)
	}
	o, err := decodeObject(stored)
	return err == nil && sameJSON(o.Data, op.object.Data)
}

// etagOf returns the ETag of a document that was read in a batch.
func etagOf(result azcosmos.TransactionalBatchResult) azcore.ETag {
	if result.ETag != "" {
		return result.ETag
	}
	var document struct {
		ETag azcore.ETag `json:"_etag"`
	}
	_ = json.Unmarshal(result.ResourceBody, &document) // without one it is not known
	return document.ETag
}

// withoutSystemMembers drops what the store adds to a document.
func withoutSystemMembers(stored []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(stored, &members) != nil {
		return stored
	}
	for _, name := range []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"} {
		delete(members, name)
	}
	rest, err := json.Marshal(members)
	if err != nil {
		return stored
	}
	return rest
}

// sameJSON reports whether two texts are the same JSON value. A store may space
// and escape it differently.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decodeValue(a)
	y, errY := decodeValue(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decodeValue(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
