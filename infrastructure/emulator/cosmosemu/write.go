package cosmosemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// writeKind decides whether a write needs an existing item. Source: the conflict rules of
// the REST reference for documents.
type writeKind uint8

const (
	writeCreate  writeKind = iota // no item: 409 if there is one
	writeReplace                  // an item: 404 if there is none
	writeUpsert                   // either
)

// putItem writes a document, both for single writes and in batches. It returns the status
// of success. id is the id of the item to replace, "" for other kinds.
func putItem(tx *store.Tx, kind writeKind, id string, doc *document.Document, match string) (store.Item, int, error) {
	if kind == writeReplace && id != doc.ID {
		return renameItem(tx, id, doc, match)
	}
	etag, found, err := tx.ETag(doc.ID)
	switch {
	case err != nil:
		return store.Item{}, 0, err
	case kind == writeCreate && found:
		return store.Item{}, 0, refuse(http.StatusConflict, "Entity with the specified id already exists in the system: %q", doc.ID)
	case kind == writeReplace && !found:
		return store.Item{}, 0, noItem(doc.ID)
	case kind != writeCreate && match != "" && match != "*" && found && !sameETag(match, etag):
		return store.Item{}, 0, etagMismatch(doc.ID, etag)
	}
	item, err := tx.Put(doc)
	if found {
		return item, http.StatusOK, err
	}
	return item, http.StatusCreated, err
}

// renameItem replaces an item by one with another id, as Microsoft's Python tests do. The
// new id must be free, and the old id is free afterwards.
func renameItem(tx *store.Tx, id string, doc *document.Document, match string) (store.Item, int, error) {
	if err := checkMatch(tx, id, match); err != nil {
		return store.Item{}, 0, err
	}
	_, taken, err := tx.ETag(doc.ID)
	if err == nil && taken {
		err = refuse(http.StatusConflict, "Entity with the specified id already exists in the system: %q", doc.ID)
	}
	if err != nil {
		return store.Item{}, 0, err
	}
	if err := tx.CheckUnique(doc, id); err != nil {
		return store.Item{}, 0, err
	}
	found, err := tx.Delete(id)
	if err == nil && !found {
		err = noItem(id)
	}
	if err != nil {
		return store.Item{}, 0, err
	}
	item, err := tx.Put(doc)
	return item, http.StatusOK, err
}

// missingOr returns a not-found error if the item to replace is missing, otherwise
// refusal: a missing item takes precedence over an invalid document.
func missingOr(x *request, c *store.Container, part *store.Partition, refusal error) error {
	at := x.moment(c)
	defer at.Release()
	if _, err := c.Get(x.buffer, part, x.route.id, at); err != nil {
		return x.notFound(err)
	}
	return refusal
}

// writeItem answers a create, replace or upsert of one item.
func writeItem(x *request, kind writeKind) (*reply, error) {
	c, part, err := x.target()
	if err != nil {
		return nil, err
	}
	doc, err := newItem(x.kind, x.body, c.Definition(), part)
	if err != nil {
		if kind == writeReplace && asWire(err).Status == http.StatusBadRequest {
			return nil, missingOr(x, c, part, err)
		}
		return nil, err
	}
	var a *reply
	commit, err := c.Update(part, func(tx *store.Tx) error {
		item, status, err := putItem(tx, kind, x.route.id, doc, first(x.header, headerIfMatch))
		if err != nil {
			return err
		}
		a = ok(status, nil, writeCharge(len(item.Body)))
		a.etag, a.usage = item.ETag, true
		if wantsBody(x.header) {
			a.body = x.keep(item.Body)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.session = commitToken(commit)
	return a, nil
}
