package recordstore

import (
	"github.com/google/uuid"

	"feedbox/infrastructure/store/document"
)

// NewJSONReader returns a reader of the aggregates of a JSON kind, by its document type.
func NewJSONReader[S any](store Store, documentType string) (*Reader[document.Stored[S], document.Listed[S]], error) {
	return NewReader(store, View[document.Stored[S], document.Listed[S]]{
		Type: documentType,
		Decode: func(data []byte) (document.Stored[S], uuid.UUID, bool, error) {
			s, err := document.DecodeStored[S](data)
			return s, s.Root.ID, s.Root.Deleted, err
		},
		Item: func(s document.Stored[S], etag string) document.Listed[S] {
			return document.Listed[S]{Stored: s, ETag: etag}
		},
	})
}
