package cosmosemu

import (
	"net/http"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// maxID and maxKeyText are the service's limits in bytes.
const (
	maxID      = 1023
	maxKeyText = 2048
)

// createItem answers POST .../docs.
func createItem(x *request) (*reply, error) { return x.writeItem(writeCreate) }

// upsertItem answers POST .../docs with the upsert header.
func upsertItem(x *request) (*reply, error) { return x.writeItem(writeUpsert) }

// replaceItem answers PUT .../docs/{id}.
func replaceItem(x *request) (*reply, error) { return x.writeItem(writeReplace) }

// readItem answers GET .../docs/{id}.
func readItem(x *request) (*reply, error) {
	c, part, err := x.target()
	if err != nil {
		return nil, err
	}
	rng := x.at
	if err := x.checkSession(c, rng); err != nil {
		return nil, err
	}
	at := x.moment()
	defer at.Release()
	lsn := at.LSN(rng) // before the read, which may see more
	item, err := c.Get(x.buffer, part, x.route.id, at)
	if err != nil {
		return nil, x.notFound(err)
	}
	a := ok(http.StatusOK, item.Body, readCharge(len(item.Body)))
	a.etag, a.session = item.ETag, sessionToken(rng.ID, lsn)
	a.extra = append(a.extra, uncounted[0], uncounted[1], headerValue{replyLocation, x.srv.scheme() + x.req.Host + x.req.URL.EscapedPath()})
	if first(x.header, headerIfNoneMatch) == item.ETag {
		a.status, a.body = http.StatusNotModified, nil
	}
	return a, nil
}

// deleteItem answers DELETE .../docs/{id}.
func deleteItem(x *request) (*reply, error) {
	c, part, err := x.target()
	if err != nil {
		return nil, err
	}
	commit, err := c.Update(part, func(tx *store.Tx) error {
		if err := checkMatch(tx, x.route.id, first(x.header, headerIfMatch)); err != nil {
			return err
		}
		found, err := tx.Delete(x.route.id)
		if err == nil && !found {
			err = store.ErrNotFound
		}
		return err
	})
	if err != nil {
		return nil, x.notFound(err)
	}
	a := ok(http.StatusNoContent, nil, deleteCharge)
	a.session = sessionToken(commit.Range, commit.LSN)
	return a, nil
}

// notFound words a not-found error.
func (x *request) notFound(err error) error {
	if e := asWire(err); e.Status != http.StatusNotFound || e.SubStatus != 0 {
		return err
	}
	return noItem(x.route.id)
}

func noItem(id string) *wireError {
	return refuse(http.StatusNotFound, "Entity with the specified id does not exist in the system: no item %q in this logical partition. "+notFound, id)
}

func etagMismatch(id, etag string) *wireError {
	return refuse(http.StatusPreconditionFailed, preconditionFailed+": the ETag of %q is %s", id, etag)
}

// target is the container and logical partition of a request on one item.
func (x *request) target() (*store.Container, *store.Partition, error) {
	c, err := x.container()
	if err != nil {
		return nil, nil, err
	}
	part, err := x.partition(c)
	if err == nil && part == nil {
		err = refuse(http.StatusBadRequest, "PartitionKey value must be supplied for this operation")
	}
	if err == nil {
		x.at = c.Topology().Locate(part.EPK)
	}
	return c, part, err
}

// partition reads the partition key header; nil if there is none. The key must be
// complete.
func (x *request) partition(c *store.Container) (*store.Partition, error) {
	key, err := x.keyHeader()
	if err != nil {
		return nil, err
	}
	if key == nil {
		if !hasSystemKey(c.Definition()) {
			return nil, nil
		}
		key = epk.Key{epk.Undefined()}
	}
	return wholePartition(c, key)
}

// wholePartition is the logical partition of a key, which must be complete.
func wholePartition(c *store.Container, key epk.Key) (*store.Partition, error) {
	def := c.Definition()
	if len(key) != len(def.Paths) {
		return nil, keyMismatch(key, def)
	}
	return store.NewPartition(key, def.Hash()), nil
}

func (x *request) keyHeader() (epk.Key, error) {
	text := first(x.header, headerPartitionKey)
	if text == "" {
		return nil, nil
	}
	key, err := epk.ParseHeader(text)
	if err != nil {
		return nil, err
	}
	if len(key) == 0 {
		key = epk.Key{epk.Undefined()}
	}
	return key, checkKey(key)
}

// keyMismatch is a key of another number of values than the container has paths.
func keyMismatch(key epk.Key, def *store.Definition) *wireError {
	return refuse(http.StatusBadRequest, "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values specified in the document. "+
		"The partition key %v has %d values, the container has %d paths", key, len(key), len(def.Paths)).sub(subKeyMismatch)
}

func checkKey(key epk.Key) error {
	for _, v := range key {
		if text, isText := v.Text(); isText && len(text) > maxKeyText {
			return refuse(http.StatusBadRequest, "The partition key value has %d bytes, at most %d are allowed", len(text), maxKeyText)
		}
	}
	return nil
}

// checkMatch compares an If-Match with the item as it is. An item that is not
// there fails the write itself.
func checkMatch(tx *store.Tx, id, match string) error {
	if match == "" || match == "*" {
		return nil
	}
	etag, found, err := tx.ETag(id)
	if err != nil || !found {
		return err
	}
	if !sameETag(match, etag) {
		return etagMismatch(id, etag)
	}
	return nil
}

// sameETag compares ETags; clients may leave the quotes out.
func sameETag(given, etag string) bool {
	return given == etag || len(given) == len(etag)-2 && given == strings.Trim(etag, `"`)
}

// wantsBody tells whether a write is to return the document.
func (x *request) wantsBody() bool {
	return !strings.EqualFold(first(x.header, headerPrefer), "return=minimal")
}

// newItem reads and checks a document that the request writes.
func (x *request) newItem(text []byte, def *store.Definition, part *store.Partition) (*document.Document, error) {
	doc, err := parseItem(text, def, part)
	if err == nil && x.kind.refusesID(doc.ID) {
		return nil, refuse(http.StatusBadRequest, `The id %q is invalid: it has a backslash`, doc.ID)
	}
	return doc, err
}

// parseItem reads and checks a document.
func parseItem(text []byte, def *store.Definition, part *store.Partition) (*document.Document, error) {
	doc, err := document.Parse(text, def.Paths)
	if err != nil {
		return nil, err
	}
	if len(doc.ID) > maxID {
		return nil, refuse(http.StatusBadRequest, "The id has %d bytes, at most %d are allowed", len(doc.ID), maxID)
	}
	if err := checkKey(doc.Key); err != nil {
		return nil, err
	}
	if !part.Holds(doc.Key) {
		return nil, refuse(http.StatusBadRequest, "PartitionKey extracted from document doesn't match the one specified in the header: %v is not %v", doc.Key, part.Key).sub(subKeyMismatch)
	}
	return doc, nil
}
