package cosmos

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/contact"
)

// contactData is the data of a contact's document. The order of the members is
// the order in which they are stored.
type contactData struct {
	Name        nameData    `json:"name"`
	Description string      `json:"description,omitempty"`
	Email       string      `json:"email,omitempty"`
	Company     companyData `json:"company"`
	CreatedAt   time.Time   `json:"createdAt"`
	ModifiedAt  time.Time   `json:"modifiedAt,omitzero"`
	DeletedAt   time.Time   `json:"deletedAt,omitzero"`
	Deleted     bool        `json:"deleted"`
	ID          uuid.UUID   `json:"id"`
	Version     int64       `json:"version"`
	Sequence    int64       `json:"sequence"`
	RequestHash string      `json:"requestHash,omitempty"`
}

type nameData struct {
	FirstName string `json:"firstName"`
	LastName  string `json:"lastName"`
}

type companyData struct {
	CompanyName string `json:"companyName"`
	Street      string `json:"street"`
	HouseNumber string `json:"houseNumber"`
	PostalCode  string `json:"postalCode"`
	City        string `json:"city"`
	Country     string `json:"country"`
}

func newContactData(s contact.State) contactData {
	return contactData{
		Name:        nameData{FirstName: s.FirstName, LastName: s.LastName},
		Description: s.Description,
		Email:       s.Email,
		Company:     companyData(s.Company),
		CreatedAt:   s.CreatedAt,
		ModifiedAt:  s.ModifiedAt,
		DeletedAt:   s.DeletedAt,
		Deleted:     s.Deleted,
		ID:          s.ID,
		Version:     s.Version,
		Sequence:    s.Sequence,
		RequestHash: s.RequestHash,
	}
}

func (d contactData) state() contact.State {
	return contact.State{
		ID:          d.ID,
		FirstName:   d.Name.FirstName,
		LastName:    d.Name.LastName,
		Description: d.Description,
		Email:       d.Email,
		Company:     contact.CompanyFields(d.Company),
		CreatedAt:   d.CreatedAt,
		ModifiedAt:  d.ModifiedAt,
		DeletedAt:   d.DeletedAt,
		Deleted:     d.Deleted,
		Version:     d.Version,
		Sequence:    d.Sequence,
		RequestHash: d.RequestHash,
	}
}

// encodeContact returns the document of a contact. A deleted contact expires
// after deletedTTL, any other never.
func encodeContact(s contact.State, deletedTTL time.Duration) (DataObject, error) {
	data, err := json.Marshal(newContactData(s))
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

// decodeContact reads a contact from its document. A document of another type is
// no contact.
func decodeContact(o DataObject) (s contact.State, isContact bool, err error) {
	if o.Type != typeContact {
		return contact.State{}, false, nil
	}
	var data contactData
	if err := json.Unmarshal(o.Data, &data); err != nil {
		return contact.State{}, true, fmt.Errorf("decode contact %s: %w", o.ID, err)
	}
	if data.ID.String() != o.ID {
		return contact.State{}, true, fmt.Errorf("decode contact %s: its data has the id %s", o.ID, data.ID)
	}
	return data.state(), true, nil
}
