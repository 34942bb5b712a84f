package cosmosemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// patchItem answers PATCH .../docs/{id}.
func patchItem(x *exchange) (*reply, error) {
	c, part, err := x.target()
	if err != nil {
		return nil, err
	}
	var a *reply
	commit, err := c.Update(part, func(tx *store.Tx) error {
		item, err := patch(tx, c.Definition(), part, x.route.id, x.body, first(x.header, headerIfMatch))
		if err != nil {
			return err
		}
		a = ok(http.StatusOK, nil, writeCharge(len(item.Body)))
		a.etag = item.ETag
		if x.wantsBody() {
			a.body = append(x.buffer, item.Body...)
		}
		return nil
	})
	if err != nil {
		return nil, x.missing(err)
	}
	a.session = sessionToken(commit.Range, commit.LSN)
	return a, nil
}

// patch changes an item inside a transaction.
func patch(tx *store.Tx, def *store.Definition, part *store.Partition, id string, body []byte, match string) (store.Item, error) {
	return store.Item{}, refuse(http.StatusNotImplemented, "Patch is not there yet")
}
