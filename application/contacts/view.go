package contacts

import (
	"time"

	"github.com/google/uuid"

	"feedbox/domain/contact"
)

// Contact is the view of a contact.
type Contact struct {
	ID          uuid.UUID
	FirstName   string
	LastName    string
	Description *string // nil: none
	Email       *string // nil: none
	Company     contact.CompanyFields
	CreatedAt   time.Time
	ModifiedAt  *time.Time // nil: never changed
	Version     int64
}

// NewContact returns the view of a contact.
func NewContact(s contact.State) Contact {
	view := Contact{
		ID:          s.ID,
		FirstName:   s.FirstName,
		LastName:    s.LastName,
		Description: optional(s.Description),
		Email:       optional(s.Email),
		Company:     s.Company,
		CreatedAt:   s.CreatedAt,
		Version:     s.Version,
	}
	if !s.ModifiedAt.IsZero() {
		view.ModifiedAt = &s.ModifiedAt
	}
	return view
}

// ContactItem is the view of a contact in a page.
type ContactItem struct {
	ID          uuid.UUID
	Email       *string // nil: none
	FullName    string
	CompanyName string
	ETag        string // quoted as in HTTP
}

// optional returns nil for the empty text, which means none.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
