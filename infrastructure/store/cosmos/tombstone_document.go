package cosmos

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/unitofwork"
)

// tombstoneID differs from the ids of aggregates and events, which are UUIDs.
const tombstoneID = "tombstone"

// tombstoneData is the data of a tombstone. Its partition key is the id of the aggregate.
type tombstoneData struct {
	Version  int64 `json:"version"`
	Sequence int64 `json:"sequence"`
}

// encodeTombstone returns a document that never expires, because it is not known how long
// consumers remember the last sequence of an aggregate.
func encodeTombstone(t aggregate.Tombstone) (DataObject, error) {
	data, err := json.Marshal(tombstoneData{Version: t.Version, Sequence: t.Sequence})
	if err != nil {
		return DataObject{}, fmt.Errorf("encode tombstone of %s: %w", t.ID, err)
	}
	return DataObject{ID: tombstoneID, PartitionKey: partitionKeyOf(t.ID), Type: document.TypeTombstone, Data: data, TTL: never}, nil
}

// bury adds the tombstone of a deleted aggregate, if it needs one, to the transaction. An
// aggregate that continued a deleted one has a tombstone already, which is replaced.
func (t *transaction[A]) bury(ctx context.Context, c *unitofwork.Change) error {
	if c.Tombstone == nil {
		return nil
	}
	o, err := encodeTombstone(*c.Tombstone)
	if err != nil {
		return err
	}
	earlier, err := t.documents.readPrimary(ctx, o.PartitionKey, o.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		return t.documents.Create(o)
	case err != nil:
		return err
	}
	o.ETag = earlier.ETag
	return t.documents.Update(o)
}

// Earlier implements unitofwork.Transaction. Any replica may answer: the tombstone is needed
// only after the deleted aggregate has expired, Kind.DeletedTTL after both were written, and
// until then the creation is refused.
func (t *transaction[A]) Earlier(ctx context.Context, id uuid.UUID) (aggregate.Tombstone, error) {
	o, err := t.documents.read(ctx, partitionKeyOf(id), tombstoneID)
	if err != nil {
		return aggregate.Tombstone{}, err
	}
	var data tombstoneData
	if err := json.Unmarshal(o.Data, &data); err != nil {
		return aggregate.Tombstone{}, fmt.Errorf("decode tombstone of %s: %w", id, err)
	}
	return aggregate.Tombstone{ID: id, Version: data.Version, Sequence: data.Sequence}, nil
}
