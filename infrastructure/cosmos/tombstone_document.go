package cosmos

import (
	"context"
	"encoding/json"
	"fmt"

	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// typeTombstone is the type of the documents that outlive deleted contacts.
const typeTombstone = "tombstone"

// tombstoneID is apart from the ids of contacts and events, which are UUIDs.
const tombstoneID = "tombstone"

// tombstoneData is the data of such a document. Whose it is, its partition key says.
type tombstoneData struct {
	Version  int64 `json:"version"`
	Sequence int64 `json:"sequence"`
}

// encodeTombstone returns a document that never expires: nobody knows how long
// consumers remember the last sequence of a contact.
func encodeTombstone(t contact.Tombstone) (DataObject, error) {
	data, err := json.Marshal(tombstoneData{Version: t.Version, Sequence: t.Sequence})
	if err != nil {
		return DataObject{}, fmt.Errorf("encode tombstone of %s: %w", t.ID, err)
	}
	return DataObject{ID: tombstoneID, PartitionKey: partitionKeyOf(t.ID), Type: typeTombstone, Data: data, TTL: never}, nil
}

// bury puts the tombstone of a deleted contact, if it needs one, into the transaction.
// A contact that was created and deleted again has one already.
func (r *ContactRepository) bury(ctx context.Context, s contact.State) error {
	t, needed := s.Tombstone()
	if !needed {
		return nil
	}
	o, err := encodeTombstone(t)
	if err != nil {
		return err
	}
	earlier, err := r.documents.readPrimary(ctx, o.PartitionKey, o.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		return r.documents.Create(o)
	case err != nil:
		return err
	}
	o.ETag = earlier.ETag
	return r.documents.Update(o)
}

// succeed makes a new contact continue a deleted one of its id, if there was one. Any
// replica may be asked: a tombstone is needed once the deleted contact has expired,
// Options.DeletedTTL after it was written, and until then the creation is refused.
func (r *ContactRepository) succeed(ctx context.Context, c *contact.Contact) error {
	if !c.Recurs() {
		return nil
	}
	o, err := r.documents.read(ctx, partitionKeyOf(c.ID()), tombstoneID)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	}
	var data tombstoneData
	if err := json.Unmarshal(o.Data, &data); err != nil {
		return fmt.Errorf("decode tombstone of %s: %w", c.ID(), err)
	}
	return c.Continue(contact.Tombstone{ID: c.ID(), Version: data.Version, Sequence: data.Sequence})
}
