package cosmosemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// writeKind is what a write expects to find. Source: the conflict rules of the
// REST reference for documents.
type writeKind uint8

const (
	writeCreate  writeKind = iota // nothing: 409 if there is an item
	writeReplace                  // an item: 404 if there is none
	writeUpsert                   // either
)

// putItem is the one place where a document is written, alone or in a batch. It
// returns the status of success. id is the one that is replaced, "" for other kinds.
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

// renameItem replaces an item by one of another id, as Microsoft's Python tests do: the
// old id is free then, and the new one must have been.
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

// absent is what is wrong with a replacement that is refused: first of all that there
// may be nothing to replace.
func (x *request) absent(c *store.Container, part *store.Partition, refusal error) error {
	at := x.moment()
	defer at.Release()
	if _, err := c.Get(x.buffer, part, x.route.id, at); err != nil {
		return x.notFound(err)
	}
	return refusal
}

// uncounted are the headers that tell the use of a container: -1, for the emulator does
// not count it and sets no limit.
var uncounted = []headerValue{
	{"x-ms-resource-quota", "documentsCount=-1;"},
	{"x-ms-resource-usage", "documentsCount=-1;"},
}

// writeItem answers a create, replace or upsert of one item.
func (x *request) writeItem(kind writeKind) (*reply, error) {
	c, part, err := x.target()
	if err != nil {
		return nil, err
	}
	doc, err := x.newItem(x.body, c.Definition(), part)
	if err != nil {
		if kind == writeReplace && asWire(err).Status == http.StatusBadRequest {
			return nil, x.absent(c, part, err)
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
		a.etag, a.extra = item.ETag, uncounted
		if x.wantsBody() {
			a.body = x.keep(item.Body)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.session = sessionToken(commit.Range, commit.LSN)
	return a, nil
}
