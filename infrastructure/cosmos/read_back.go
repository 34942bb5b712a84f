package cosmos

import (
	"bytes"
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
		stored, err := c.readPrimary(ctx, op.object.PartitionKey, op.object.ID)
		gone := fault.Is(err, fault.NotFound)
		if err != nil && !gone {
			return nil, false, err
		}
		applied := !gone && sameJSON(stored.Data, op.object.Data)
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
