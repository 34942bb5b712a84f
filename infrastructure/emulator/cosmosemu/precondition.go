package cosmosemu

import (
	"net/http"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// preconditionFailed is the service's message of each 412.
const preconditionFailed = "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed"

// checkMatch compares an If-Match with the current ETag of an item. A missing item passes,
// because the write itself then fails.
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

// checkCatalogMatch checks the precondition of a change to anything but an item.
func checkCatalogMatch(h http.Header, etag string) error {
	if match := first(h, headerIfMatch); match != "" && match != "*" && !sameETag(match, etag) {
		return refuse(http.StatusPreconditionFailed, "The resource has changed: its ETag is %s", etag)
	}
	return nil
}

// sameETag compares ETags; clients may omit the quotes.
func sameETag(given, etag string) bool {
	return given == etag || len(given) == len(etag)-2 && given == strings.Trim(etag, `"`)
}

func etagMismatch(id, etag string) *wireError {
	return refuse(http.StatusPreconditionFailed, preconditionFailed+": the ETag of %q is %s", id, etag)
}
