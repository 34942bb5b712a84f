// Package contacts reads contacts in PostgreSQL for queries.
package contacts

import (
	"feedbox/application/contacts"
	"feedbox/domain/contact"
	documents "feedbox/infrastructure/document/contacts"
	"feedbox/infrastructure/postgres"
)

// Reader reads contacts. It is safe for concurrent use.
type Reader = postgres.Reader[contact.State, contacts.ContactItem]

var _ contacts.Reader = (*Reader)(nil)

// NewReader returns a reader of the contacts in db.
func NewReader(db *postgres.DB) (*Reader, error) {
	return postgres.NewReader(db, postgres.View[contact.State, contacts.ContactItem]{Type: documents.Type, Decode: documents.DecodeState, Item: item})
}

func item(s contact.State, etag string) contacts.ContactItem {
	one := contacts.ContactItem{ID: s.ID, FullName: s.FullName(), CompanyName: s.Company.CompanyName, ETag: etag}
	if s.Email != "" {
		one.Email = &s.Email
	}
	return one
}
