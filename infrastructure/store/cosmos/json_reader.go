package cosmos

import (
	"encoding/json"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/infrastructure/store/document"
)

// JSONReader reads the aggregates of a JSON kind for queries: one by its id, or pages. It is safe
// for concurrent use.
type JSONReader[S any] struct {
	*Reader[document.Stored[S]]
	*Pager[storedRow, document.Listed[S]]
}

type storedRow struct {
	Data json.RawMessage `json:"data"`
	ETag string          `json:"_etag"`
}

// NewJSONReader returns a reader of the aggregates of a JSON kind, by its document type.
func NewJSONReader[S any](container *azcosmos.ContainerClient, documentType string) (*JSONReader[S], error) {
	reader, err := NewReader(container, View[document.Stored[S]]{Type: documentType, Decode: func(data []byte) (document.Stored[S], uuid.UUID, bool, error) {
		s, err := document.DecodeStored[S](data)
		return s, s.Root.ID, s.Root.Deleted, err
	}})
	if err != nil {
		return nil, err
	}
	pager, err := NewPager(container, Listing[storedRow, document.Listed[S]]{
		Query: `SELECT c.data, c._etag FROM c WHERE c.type = @type AND c.data.deleted = false`,
		Type:  documentType,
		Item: func(row storedRow) (document.Listed[S], error) {
			s, err := document.DecodeStored[S](row.Data)
			return document.Listed[S]{Stored: s, ETag: row.ETag}, err
		},
	})
	if err != nil {
		return nil, err
	}
	return &JSONReader[S]{reader, pager}, nil
}
