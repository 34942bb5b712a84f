package cosmosemu

import (
	"fmt"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// deletePartition answers POST .../operations/partitionkeydelete: all items of a
// logical partition go. On the service that takes a while in the background; here it
// is done when the answer comes, in transactions as large as a batch.
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
				if _, err := tx.Delete(id); err != nil { // one that is gone meanwhile is as good
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		ids, a.session = ids[n:], sessionToken(commit.Range, commit.LSN)
	}
	return a, nil
}

// listConflicts answers GET and POST .../conflicts: an account of one region has none.
func listConflicts(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	if isQuery(x.header) && first(x.header, headerPartitionKey) == "" && !isTrue(x.header, headerCrossPartition) {
		return nil, crossPartitionDisabled()
	}
	a := ok(http.StatusOK, fmt.Appendf(nil, `{"_rid":%q,"Conflicts":[],"_count":0}`, c.RID), 1)
	a.count = 0
	return a, nil
}

// readConflict answers GET and DELETE .../conflicts/{id}.
func readConflict(x *request) (*reply, error) {
	if _, err := x.container(); err != nil {
		return nil, err
	}
	return nil, refuse(http.StatusNotFound, "Entity with the specified id does not exist in the system: no conflict %q. "+notFound, x.route.id)
}
