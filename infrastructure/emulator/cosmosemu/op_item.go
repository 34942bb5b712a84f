package cosmosemu

import (
	"net/http"
	"strconv"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// createItem answers POST .../docs and creates an item.
//
//   - Supports: any JSON object with an id, a time to live of its own, binary JSON,
//     Prefer: return=minimal.
//   - Refuses: an invalid document or another partition key than in the header (400), an id
//     or unique key in use (409), more than 2 MB (413).
//   - Source: REST reference, Create Document.
func createItem(x *request) (*reply, error) { return writeItem(x, writeCreate) }

// upsertItem answers POST .../docs with the upsert header: it creates an item or replaces it.
//
//   - Supports: as createItem; If-Match applies if the item exists.
//   - Refuses: as createItem, except for an id in use; another ETag (412).
//   - Source: REST reference, Create Document.
func upsertItem(x *request) (*reply, error) { return writeItem(x, writeUpsert) }

// replaceItem answers PUT .../docs/{id} and replaces an item.
//
//   - Supports: as createItem; If-Match; another id in the body, which renames the item.
//   - Refuses: a missing item (404), another ETag (412), a new id or unique key in use (409).
//     An invalid document gives 404 if the item is missing too, otherwise 400.
//   - Source: REST reference, Replace a Document; the SDK for Python's tests of renamed items.
func replaceItem(x *request) (*reply, error) { return writeItem(x, writeReplace) }

// readItem answers GET .../docs/{id} with an item.
//
//   - Supports: If-None-Match (304), session tokens, stale reads (Options.StaleReads).
//   - Refuses: a missing or expired item (404), a session token that is ahead (404/1002), a
//     missing or incomplete partition key (400).
//   - Source: REST reference, Get a Document; .NET's CosmosItemTests.
func readItem(x *request) (*reply, error) {
	c, part, err := x.target()
	if err != nil {
		return nil, err
	}
	rng := x.at
	if err := x.checkSession(c, rng); err != nil {
		return nil, err
	}
	at := x.moment(c)
	defer at.Release()
	lsn := at.LSN(rng) // taken before the read, which may see later writes
	item, err := c.Get(x.buffer, part, x.route.id, at)
	if err != nil {
		return nil, x.notFound(err)
	}
	a := ok(http.StatusOK, item.Body, readCharge(len(item.Body)))
	a.etag, a.session = item.ETag, rangeToken(rng, lsn)
	a.usage, a.itemLSN = true, strconv.FormatUint(item.LSN, 10)
	a.location = x.account.scheme() + x.req.Host + x.req.URL.EscapedPath()
	if first(x.header, headerIfNoneMatch) == item.ETag {
		a.status, a.body = http.StatusNotModified, nil
	}
	return a, nil
}

// deleteItem answers DELETE .../docs/{id} and deletes an item.
//
//   - Supports: If-Match.
//   - Refuses: a missing item (404), another ETag (412), a missing or incomplete partition
//     key (400).
//   - Source: REST reference, Delete a Document.
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
	a.session = commitToken(commit)
	return a, nil
}

// listItems answers GET .../docs without the A-IM header and returns all items in the order of
// insertion.
//
//   - Supports: pages, a range id or partition key, a window of effective partition keys,
//     reading in reverse, session tokens, stale reads.
//   - Refuses: an invalid continuation or page size (400), a range that was split or merged
//     (410), a session token that is ahead (404/1002).
//   - Source: REST reference, List Documents; .NET's CosmosReadFeedTests.
func listItems(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	return runQuery(x, c, nil)
}
