package cosmos

import (
	"context"
	"encoding/json"
	"fmt"

	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/document"
)

// tombstoneID is apart from the ids of aggregates and events, which are UUIDs.
const tombstoneID = "tombstone"

// tombstoneData is the data of such a document. Whose it is, its partition key says.
type tombstoneData struct {
	Version  int64 `json:"version"`
	Sequence int64 `json:"sequence"`
}

// encodeTombstone returns a document that never expires: nobody knows how long
// consumers remember the last sequence of an aggregate.
func encodeTombstone(t aggregate.Tombstone) (DataObject, error) {
	data, err := json.Marshal(tombstoneData{Version: t.Version, Sequence: t.Sequence})
	if err != nil {
		return DataObject{}, fmt.Errorf("encode tombstone of %s: %w", t.ID, err)
	}
	return DataObject{ID: tombstoneID, PartitionKey: partitionKeyOf(t.ID), Type: document.TypeTombstone, Data: data, TTL: never}, nil
}

// bury puts the tombstone of a deleted aggregate, if it needs one, into the transaction.
// One that was created and deleted again has one already.
func (w *UnitOfWork[A]) bury(ctx context.Context, a A, commit aggregate.Commit) error {
	t, needed := a.Tombstone(commit)
	if !needed {
		return nil
	}
	o, err := encodeTombstone(t)
	if err != nil {
		return err
	}
	earlier, err := w.documents.readPrimary(ctx, o.PartitionKey, o.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		return w.documents.Create(o)
	case err != nil:
		return err
	}
	o.ETag = earlier.ETag
	return w.documents.Update(o)
}

// succeed makes a new aggregate continue a deleted one of its id, if there was one. Any
// replica may be asked: a tombstone is needed once the deleted aggregate has expired,
// Kind.DeletedTTL after it was written, and until then the creation is refused.
func (w *UnitOfWork[A]) succeed(ctx context.Context, a A) error {
	if !a.HasDerivedID() {
		return nil
	}
	o, err := w.documents.read(ctx, partitionKeyOf(a.ID()), tombstoneID)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	}
	var data tombstoneData
	if err := json.Unmarshal(o.Data, &data); err != nil {
		return fmt.Errorf("decode tombstone of %s: %w", a.ID(), err)
	}
	return a.Continue(aggregate.Tombstone{ID: a.ID(), Version: data.Version, Sequence: data.Sequence})
}
