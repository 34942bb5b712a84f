// Package contacts reads contacts for queries, in stores that keep rows.
package contacts

import (
	"feedbox/application/contacts"
	"feedbox/domain/contact"
	documents "feedbox/infrastructure/document/contacts"
	"feedbox/infrastructure/rows"
)

// Reader reads contacts. It is safe for concurrent use.
type Reader = rows.Reader[contact.State, contacts.ContactItem]

var _ contacts.Reader = (*Reader)(nil)

// NewReader returns a reader of the contacts in store.
func NewReader(store rows.Store) (*Reader, error) {
	return rows.NewReader(store, rows.View[contact.State, contacts.ContactItem]{Type: documents.Type, Decode: documents.DecodeState, Item: item})
}

func item(s contact.State, etag string) contacts.ContactItem {
	one := contacts.ContactItem{ID: s.ID, FullName: s.FullName(), CompanyName: s.Company.CompanyName, ETag: etag}
	if s.Email != "" {
		one.Email = &s.Email
	}
	return one
}
