package contacts

import (
	"feedbox/domain/aggregate"
	"feedbox/domain/contact"
	"feedbox/infrastructure/cosmos"
)

// Type is the type of the documents that hold contacts.
const Type = "contact"

// room is for the data of usual contacts, in bytes.
const room = 640

// Kind returns how contacts are stored.
func Kind() *cosmos.Kind[*contact.Contact] {
	return &cosmos.Kind[*contact.Contact]{
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
