package cosmosemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// maxID is the service's limit for the id of an item, in bytes.
const maxID = 1023

// newItem reads and checks a document that a request through this gateway writes.
func newItem(kind gatewayKind, text []byte, def *store.Definition, part *store.Partition) (*document.Document, error) {
	doc, err := parseItem(text, def, part)
	if err == nil && kind.refusesID(doc.ID) {
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
