package contacts

import (
	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/contact"
	"feedbox/infrastructure/store/document"
)

// Type is the type of the documents that hold contacts.
const Type = "contact"

// room is the initial buffer for the data of a contact, in bytes.
const room = 640

// Kind returns the kind of contacts.
func Kind() *document.Kind[*contact.Contact] {
	return &document.Kind[*contact.Contact]{
		Type: Type, IDMember: "contactId", Encode: encode, Decode: decode, Events: events(),
	}
}

func encode(c *contact.Contact, commit aggregate.Commit) ([]byte, error) {
	return encodeState(c.StateAt(commit))
}

func decode(data []byte) (*contact.Contact, error) {
	s, err := readContact(data)
	if err != nil {
		return nil, err
	}
	return contact.Rehydrate(s)
}

// DecodeState returns the state, the id and the deletion mark in the data of a contact.
func DecodeState(data []byte) (s contact.State, id uuid.UUID, deleted bool, err error) {
	s, err = readContact(data)
	return s, s.ID, s.Deleted, err
}
