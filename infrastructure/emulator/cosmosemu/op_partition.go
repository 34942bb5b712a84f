package cosmosemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// deletePartition answers POST .../operations/partitionkeydelete and deletes all items of
// a logical partition.
//
//   - Supports: complete partition keys. The service deletes in the background; here the
//     items are deleted when the answer arrives, in transactions of the size of a batch.
//   - Refuses: a missing or incomplete partition key (400).
//   - Source: delete_all_items_by_partition_key of the SDK for Python.
func deletePartition(x *request) (*reply, error) {
	c, part, err := x.target()
	if err != nil {
		return nil, err
	}
	var ids []string
	if err := c.Scan(store.Scope{Part: part}, func(_ uint64, body []byte) bool {
		if id, found := document.Member(body, "id"); found {
			ids = append(ids, document.Unquote(id))
		}
		return true
	}); err != nil {
		return nil, err
	}
	a := ok(http.StatusOK, nil, 1)
	for len(ids) > 0 {
		n := min(len(ids), maxBatch)
		commit, err := c.Update(part, func(tx *store.Tx) error {
			for _, id := range ids[:n] {
				if _, err := tx.Delete(id); err != nil { // an item deleted in the meantime is no error
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		ids, a.session = ids[n:], commitToken(commit)
	}
	return a, nil
}
