package cosmos

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"

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
		stored, err := c.readPrimary(ctx, op.object.PartitionKey, op.object.ID)
		gone := fault.Is(err, fault.NotFound)
		if err != nil && !gone {
			return nil, false, err
		}
		applied := !gone && sameJSON(stored.Data, op.object.Data)
		if op.verb == verbDelete {
			applied = gone
		}
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

// readPrimary reads a document as it is now. A plain read may be answered by a
// replica that lags behind; a transactional batch is executed by the primary,
// also one that only reads.
func (c *ContainerContext) readPrimary(ctx context.Context, partitionKey, id string) (DataObject, error) {
	what := "read document " + id
	batch := c.container.NewTransactionalBatch(keyValue(partitionKey))
	batch.ReadItem(id, nil)
	reply, err := c.container.ExecuteTransactionalBatch(ctx, batch, nil)
	if err != nil {
		c.session.merge(sessionOf(err))
		return DataObject{}, asFault(what, err)
	}
	c.session.merge(reply.SessionToken)
	if len(reply.OperationResults) != 1 {
		return DataObject{}, asFault(what, errNoResult)
	}
	result := reply.OperationResults[0]
	if result.StatusCode != http.StatusOK {
		return DataObject{}, statusFault(what, int(result.StatusCode), reply.RawResponse, errRefused)
	}
	return decodeObjectOf(result)
}

func decodeObjectOf(result azcosmos.TransactionalBatchResult) (DataObject, error) {
	o, err := decodeObject(result.ResourceBody)
	if err != nil {
		return DataObject{}, err
	}
	if result.ETag != "" {
		o.ETag = result.ETag
	}
	return o, nil
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
