package contacts

import (
	"time"

	"github.com/google/uuid"

	"feedbox/application/contacts"
)

// contactView is a contact as clients see it.
type contactView struct {
	ID          uuid.UUID   `json:"id" doc:"id of the contact, made by the service"`
	Name        nameView    `json:"name"`
	Description *string     `json:"description" doc:"free text, or null"`
	Email       *string     `json:"email" doc:"e-mail address, or null"`
	Company     companyView `json:"company"`
	CreatedAt   time.Time   `json:"createdAt" doc:"when the contact was created"`
	ModifiedAt  *time.Time  `json:"modifiedAt" doc:"when the contact was last changed, or null"`
	Version     int64       `json:"version" doc:"rises by one with each change, from 1, or from that of a deleted contact of this id"`
}

type nameView struct {
	FirstName string `json:"firstName"`
	LastName  string `json:"lastName"`
}

type companyView struct {
	CompanyName string `json:"companyName"`
	Street      string `json:"street"`
	HouseNumber string `json:"houseNumber"`
	PostalCode  string `json:"postalCode"`
	City        string `json:"city"`
	Country     string `json:"country"`
}

func viewOf(c contacts.Contact) contactView {
	return contactView{
		ID:          c.ID,
		Name:        nameView{FirstName: c.FirstName, LastName: c.LastName},
		Description: c.Description,
		Email:       c.Email,
		Company:     companyView(c.Company),
		CreatedAt:   c.CreatedAt,
		ModifiedAt:  c.ModifiedAt,
		Version:     c.Version,
	}
}
