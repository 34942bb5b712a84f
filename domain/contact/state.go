package contact

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
)

// State is a contact as plain values, for stores, events and views.
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
	RequestHash string // see aggregate.Snapshot
	Version     int64  // see aggregate.Snapshot
	Sequence    int64  // of the contact's last event
}

// FullName returns both parts of the name with a space between them.
func (s State) FullName() string { return Name{first: s.FirstName, last: s.LastName}.Full() }

// String omits personal data, because formatted values end up in logs.
func (s State) String() string { return "contact " + s.ID.String() }

// Rehydrate returns the contact that a store has read. It does not validate the text, because
// the text may be older than the current rules. A state that no commit can have stored is an
// error.
func Rehydrate(s State) (*Contact, error) {
	root, err := aggregate.Restore(aggregate.Snapshot{
		ID: s.ID, Version: s.Version, Sequence: s.Sequence, Deleted: s.Deleted, RequestHash: s.RequestHash,
	})
	if err != nil {
		return nil, fmt.Errorf("rehydrate contact: %w", err)
	}
	return &Contact{
		Root:        root,
		name:        Name{first: s.FirstName, last: s.LastName},
		description: Description{text: s.Description},
		email:       Email{address: s.Email},
		company:     Company{fields: s.Company},
		createdAt:   s.CreatedAt,
		modifiedAt:  s.ModifiedAt,
		deletedAt:   s.DeletedAt,
	}, nil
}

// State returns the contact as plain values: the current parts with the version of the last
// commit.
func (c *Contact) State() State {
	root := c.Snapshot()
	return State{
		ID:          root.ID,
		FirstName:   c.name.first,
		LastName:    c.name.last,
		Description: c.description.text,
		Email:       c.email.address,
		Company:     c.company.fields,
		CreatedAt:   c.createdAt,
		ModifiedAt:  c.modifiedAt,
		DeletedAt:   c.deletedAt,
		Deleted:     root.Deleted,
		RequestHash: root.RequestHash,
		Version:     root.Version,
		Sequence:    root.Sequence,
	}
}

// StateAt returns the state that commit stores: State with its version and sequence.
func (c *Contact) StateAt(commit aggregate.Commit) State {
	s := c.State()
	s.Version, s.Sequence = commit.Version, commit.Sequence
	return s
}
