package cosmosemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// patchItem answers PATCH .../docs/{id} and changes parts of an item.
//
//   - Supports: add, set, replace, remove, incr and move, a condition, If-Match,
//     Prefer: return=minimal.
//   - Refuses: an invalid patch, or one of the id, the partition key or a system property
//     (400), a missing item (404), a unique key in use (409), a false condition or another
//     ETag (412), a result of more than 2 MB (413).
//   - Source: the service's documentation of partial document update.
func patchItem(x *request) (*reply, error) {
	c, part, err := x.target()
	if err != nil {
		return nil, err
	}
	var a *reply
	commit, err := c.Update(part, func(tx *store.Tx) error {
		item, err := applyPatch(x, tx, c.Definition(), part, x.route.id, x.body, first(x.header, headerIfMatch))
		if err != nil {
			return err
		}
		a = ok(http.StatusOK, nil, writeCharge(len(item.Body)))
		a.etag = item.ETag
		if wantsBody(x.header) {
			a.body = x.keep(item.Body)
		}
		return nil
	})
	if err != nil {
		return nil, x.notFound(err)
	}
	a.session = commitToken(commit)
	return a, nil
}
