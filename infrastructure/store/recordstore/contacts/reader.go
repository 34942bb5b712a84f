// Package contacts reads contacts from a record store for queries.
package contacts

import (
	"feedbox/application/contacts"
	"feedbox/domain/contact"
	documents "feedbox/infrastructure/store/document/contacts"
	"feedbox/infrastructure/store/recordstore"
)

// Reader reads contacts. It is safe for concurrent use.
type Reader = recordstore.Reader[contact.State, contacts.ContactItem]

// NewReader returns a reader of the contacts in store.
func NewReader(store recordstore.Store) (*Reader, error) {
	return recordstore.NewReader(store, recordstore.View[contact.State, contacts.ContactItem]{Type: documents.Type, Decode: documents.DecodeState, Item: item})
}

func item(s contact.State, etag string) contacts.ContactItem {
	one := contacts.ContactItem{ID: s.ID, FullName: s.FullName(), CompanyName: s.Company.CompanyName, ETag: etag}
	if s.Email != "" {
		one.Email = &s.Email
	}
	return one
}
