// Package contacts reads contacts from Azure Cosmos DB for queries.
package contacts

import (
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/contacts"
	"feedbox/domain/contact"
	"feedbox/infrastructure/store/cosmos"
	documents "feedbox/infrastructure/store/document/contacts"
)

// Reader reads contacts for queries. It is safe for concurrent use.
type Reader struct {
	*cosmos.Reader[contact.State]
	*cosmos.Pager[row, contacts.ContactItem]
}

// listQuery selects the contacts that are not deleted.
const listQuery = `SELECT c.id, c._etag, c.data.email, c.data.name, c.data.company.companyName FROM c ` +
	`WHERE c.type = @type AND c.data.deleted = false`

type row struct {
	ID    uuid.UUID `json:"id"`
	ETag  string    `json:"_etag"`
	Email *string   `json:"email"`
	Name  struct {
		FirstName string `json:"firstName"`
		LastName  string `json:"lastName"`
	} `json:"name"`
	CompanyName string `json:"companyName"`
}

// NewReader returns a reader of the contacts in container.
func NewReader(container *azcosmos.ContainerClient) (*Reader, error) {
	reader, err := cosmos.NewReader(container, cosmos.View[contact.State]{Type: documents.Type, Decode: documents.DecodeState})
	if err != nil {
		return nil, err
	}
	pager, err := cosmos.NewPager(container, cosmos.Listing[row, contacts.ContactItem]{Query: listQuery, Type: documents.Type, Item: row.item})
	if err != nil {
		return nil, err
	}
	return &Reader{reader, pager}, nil
}

func (r row) item() (contacts.ContactItem, error) {
	full := contact.State{FirstName: r.Name.FirstName, LastName: r.Name.LastName}.FullName()
	return contacts.ContactItem{ID: r.ID, Email: r.Email, FullName: full, CompanyName: r.CompanyName, ETag: r.ETag}, nil
}
