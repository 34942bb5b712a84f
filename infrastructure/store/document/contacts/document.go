package contacts

import (
	"feedbox/domain/contact"
	"feedbox/infrastructure/store/internal/jsontext"
)

func encodeState(s contact.State) ([]byte, error) {
	w := jsontext.NewWriter(room)
	writeContact(w, s)
	return w.Done()
}

// writeContact writes the data of a contact's document, in the stored order of its members.
func writeContact(w *jsontext.Writer, c contact.State) {
	w.Object(func() {
		writeName(w, c.FirstName, c.LastName)
		w.TextIfAny("description", c.Description)
		w.TextIfAny("email", c.Email)
		writeCompany(w, c.Company)
		w.Time("createdAt", c.CreatedAt)
		w.TimeIfAny("modifiedAt", c.ModifiedAt)
		w.TimeIfAny("deletedAt", c.DeletedAt)
		w.Boolean("deleted", c.Deleted)
		w.UUID("id", c.ID)
		w.Integer("version", c.Version)
		w.Integer("sequence", c.Sequence)
		w.TextIfAny("requestHash", c.RequestHash)
	})
}

func writeName(w *jsontext.Writer, first, last string) {
	w.Member("name")
	w.Object(func() {
		w.Text("firstName", first)
		w.Text("lastName", last)
	})
}

func writeCompany(w *jsontext.Writer, c contact.CompanyFields) {
	w.Member("company")
	w.Object(func() {
		w.Text("companyName", c.CompanyName)
		w.Text("street", c.Street)
		w.Text("houseNumber", c.HouseNumber)
		w.Text("postalCode", c.PostalCode)
		w.Text("city", c.City)
		w.Text("country", c.Country)
	})
}

// readContact is the inverse of writeContact.
func readContact(data []byte) (c contact.State, err error) {
	s := jsontext.NewScanner(data)
	err = s.Object(func(member string) (err error) {
		switch member {
		case "name":
			err = readName(&s, &c)
		case "description":
			c.Description, err = s.RequireText()
		case "email":
			c.Email, err = s.RequireText()
		case "company":
			err = readCompany(&s, &c.Company)
		case "createdAt":
			c.CreatedAt, err = s.RequireTime()
		case "modifiedAt":
			c.ModifiedAt, err = s.RequireTime()
		case "deletedAt":
			c.DeletedAt, err = s.RequireTime()
		case "deleted":
			c.Deleted, err = s.RequireBoolean()
		case "id":
			c.ID, err = s.RequireUUID()
		case "version":
			c.Version, err = s.RequireInteger()
		case "sequence":
			c.Sequence, err = s.RequireInteger()
		case "requestHash":
			c.RequestHash, err = s.RequireText()
		default:
			err = s.Skip()
		}
		return err
	})
	return c, err
}

func readName(s *jsontext.Scanner, c *contact.State) error {
	return s.Object(func(member string) (err error) {
		switch member {
		case "firstName":
			c.FirstName, err = s.RequireText()
		case "lastName":
			c.LastName, err = s.RequireText()
		default:
			err = s.Skip()
		}
		return err
	})
}

func readCompany(s *jsontext.Scanner, c *contact.CompanyFields) error {
	return s.Object(func(member string) (err error) {
		switch member {
		case "companyName":
			c.CompanyName, err = s.RequireText()
		case "street":
			c.Street, err = s.RequireText()
		case "houseNumber":
			c.HouseNumber, err = s.RequireText()
		case "postalCode":
			c.PostalCode, err = s.RequireText()
		case "city":
			c.City, err = s.RequireText()
		case "country":
			c.Country, err = s.RequireText()
		default:
			err = s.Skip()
		}
		return err
	})
}
