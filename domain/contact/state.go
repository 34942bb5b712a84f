package contact

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// State is a contact as plain values, for stores, events and views. It has no
// behaviour; changing one changes no contact.
type State struct {
	ID          uuid.UUID
	FirstName   string
	LastName    string
	Description string // empty: none
	Email       string // empty: none
	Company     CompanyFields
	CreatedAt   time.Time
	ModifiedAt  time.Time // zero: never changed
	DeletedAt   time.Time // zero: not deleted
	Deleted     bool
	RequestHash string // see Details
	// Version rises by one per commit, from 1, or from that of a deleted contact of the
	// same id.
	Version int64
	// Sequence is the sequence of the contact's last event.
	Sequence int64
}

// FullName returns both parts of the name with a space between them.
func (s State) FullName() string { return Name{first: s.FirstName, last: s.LastName}.Full() }

// String names the contact without its personal data: formatted values end up in logs.
func (s State) String() string { return "contact " + s.ID.String() }

// Rehydrate returns the contact a store has read. It trusts the text, which may
// be older than today's rules, and refuses only a state no commit can have left.
func Rehydrate(s State) (*Contact, error) {
	if s.ID == uuid.Nil {
		return nil, fmt.Errorf("rehydrate contact: it has no id")
	}
	if s.Version < 1 || s.Sequence < s.Version {
		return nil, fmt.Errorf("rehydrate contact %s: version %d and sequence %d cannot be; a commit raises both", s.ID, s.Version, s.Sequence)
	}
	return &Contact{
		stored:      true,
		id:          s.ID,
		name:        Name{first: s.FirstName, last: s.LastName},
		description: Description{text: s.Description},
		email:       Email{address: s.Email},
		company:     Company{fields: s.Company},
		createdAt:   s.CreatedAt,
		modifiedAt:  s.ModifiedAt,
		deletedAt:   s.DeletedAt,
		deleted:     s.Deleted,
		requestHash: s.RequestHash,
		version:     s.Version,
		sequence:    s.Sequence,
	}, nil
}

// State returns the contact as plain values, as of its last commit's version but
// with the changes made since.
func (c *Contact) State() State {
	return State{
		ID:          c.id,
		FirstName:   c.name.first,
		LastName:    c.name.last,
		Description: c.description.text,
		Email:       c.email.address,
		Company:     c.company.fields,
		CreatedAt:   c.createdAt,
		ModifiedAt:  c.modifiedAt,
		DeletedAt:   c.deletedAt,
		Deleted:     c.deleted,
		RequestHash: c.requestHash,
		Version:     c.version,
		Sequence:    c.sequence,
	}
}
