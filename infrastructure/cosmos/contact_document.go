package cosmos

import (
	"fmt"
	"time"

	"feedbox/domain/contact"
)

// encodeContact returns the document of a contact. A deleted contact expires
// after deletedTTL, any other never.
func encodeContact(s contact.State, deletedTTL time.Duration) (DataObject, error) {
	w := newJSONWriter(dataRoom)
	writeContact(w, s)
	data, err := w.done()
	if err != nil {
		return DataObject{}, fmt.Errorf("encode contact %s: %w", s.ID, err)
	}
	ttl := never
	if s.Deleted {
		ttl = seconds(deletedTTL)
	}
	key := partitionKeyOf(s.ID)
	return DataObject{ID: s.ID.String(), PartitionKey: key, Type: typeContact, Data: data, TTL: ttl}, nil
}

// writeContact writes the data of a contact's document, in the order in which its
// members are stored.
func writeContact(w *jsonWriter, c contact.State) {
	w.object(func() {
		writeName(w, c.FirstName, c.LastName)
		w.textIfAny("description", c.Description)
		w.textIfAny("email", c.Email)
		writeCompany(w, c.Company)
		w.time("createdAt", c.CreatedAt)
		w.timeIfAny("modifiedAt", c.ModifiedAt)
		w.timeIfAny("deletedAt", c.DeletedAt)
		w.boolean("deleted", c.Deleted)
		w.uuid("id", c.ID)
		w.integer("version", c.Version)
		w.integer("sequence", c.Sequence)
		w.textIfAny("requestHash", c.RequestHash)
	})
}

func writeName(w *jsonWriter, first, last string) {
	w.member("name")
	w.object(func() {
		w.text("firstName", first)
		w.text("lastName", last)
	})
}

func writeCompany(w *jsonWriter, c contact.CompanyFields) {
	w.member("company")
	w.object(func() {
		w.text("companyName", c.CompanyName)
		w.text("street", c.Street)
		w.text("houseNumber", c.HouseNumber)
		w.text("postalCode", c.PostalCode)
		w.text("city", c.City)
		w.text("country", c.Country)
	})
}

// decodeContact reads a contact from its document. A document of another type is
// no contact. The texts of the contact share the document's memory.
func decodeContact(o DataObject) (s contact.State, isContact bool, err error) {
	if o.Type != typeContact {
		return contact.State{}, false, nil
	}
	if s, err = readContact(o.Data); err != nil {
		return contact.State{}, true, fmt.Errorf("decode contact %s: %w", o.ID, err)
	}
	if s.ID.String() != o.ID {
		return contact.State{}, true, fmt.Errorf("decode contact %s: its data has the id %s", o.ID, s.ID)
	}
	return s, true, nil
}

// readContact reads what writeContact has written.
func readContact(data []byte) (c contact.State, err error) {
	s := jsonScanner{buf: data}
	err = s.object(func(member string) (err error) {
		switch member {
		case "name":
			err = readName(&s, &c)
		case "description":
			c.Description, err = s.requireText()
		case "email":
			c.Email, err = s.requireText()
		case "company":
			err = readCompany(&s, &c.Company)
		case "createdAt":
			c.CreatedAt, err = s.requireTime()
		case "modifiedAt":
			c.ModifiedAt, err = s.requireTime()
		case "deletedAt":
			c.DeletedAt, err = s.requireTime()
		case "deleted":
			c.Deleted, err = s.requireBoolean()
		case "id":
			c.ID, err = s.requireUUID()
		case "version":
			c.Version, err = s.requireInteger()
		case "sequence":
			c.Sequence, err = s.requireInteger()
		case "requestHash":
			c.RequestHash, err = s.requireText()
		default:
			err = s.skip()
		}
		return err
	})
	return c, err
}

func readName(s *jsonScanner, c *contact.State) error {
	return s.object(func(member string) (err error) {
		switch member {
		case "firstName":
			c.FirstName, err = s.requireText()
		case "lastName":
			c.LastName, err = s.requireText()
		default:
			err = s.skip()
		}
		return err
	})
}

func readCompany(s *jsonScanner, c *contact.CompanyFields) error {
	return s.object(func(member string) (err error) {
		switch member {
		case "companyName":
			c.CompanyName, err = s.requireText()
		case "street":
			c.Street, err = s.requireText()
		case "houseNumber":
			c.HouseNumber, err = s.requireText()
		case "postalCode":
			c.PostalCode, err = s.requireText()
		case "city":
			c.City, err = s.requireText()
		case "country":
			c.Country, err = s.requireText()
		default:
			err = s.skip()
		}
		return err
	})
}
