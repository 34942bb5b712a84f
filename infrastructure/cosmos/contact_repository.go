package cosmos

import (
	"context"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// ContactRepository holds the contacts of one unit of work with the ETags they
// were read with.
type ContactRepository struct {
	documents *ContainerContext
	tracked   []*trackedContact
}

type trackedContact struct {
	contact *contact.Contact
	etag    azcore.ETag // empty: not stored yet
}

var errChanged = fault.New(fault.PreconditionFailed, "", "the contact was changed by somebody else; read it again")

var _ command.Contacts = (*ContactRepository)(nil)

// Add implements command.Contacts.
func (r *ContactRepository) Add(ctx context.Context, c *contact.Contact) error {
	if r.find(c.ID()) != nil {
		return fmt.Errorf("add %s: the unit of work has it already", c)
	}
	if err := r.succeed(ctx, c); err != nil {
		return err
	}
	r.tracked = append(r.tracked, &trackedContact{contact: c})
	return nil
}

// Read implements command.Contacts. It returns the same contact each time.
func (r *ContactRepository) Read(ctx context.Context, id uuid.UUID, ifMatch []string) (*contact.Contact, error) {
	found := r.find(id)
	if found == nil {
		o, err := r.read(ctx, id, ifMatch)
		if err != nil {
			return nil, err
		}
		if found, err = rehydrate(id, o); err != nil {
			return nil, err
		}
		r.tracked = append(r.tracked, found)
	}
	if !found.contact.Deleted() && !matches(ifMatch, found.etag) {
		return nil, errChanged
	}
	return found.contact, nil
}

// read asks any replica first. It asks the primary when that answer would refuse
// the command: the replica may lag behind.
func (r *ContactRepository) read(ctx context.Context, id uuid.UUID, ifMatch []string) (DataObject, error) {
	o, err := r.documents.read(ctx, partitionKeyOf(id), id.String())
	switch {
	case fault.Is(err, fault.NotFound), err == nil && !matches(ifMatch, o.ETag):
		o, err = r.documents.readPrimary(ctx, partitionKeyOf(id), id.String())
	}
	if fault.Is(err, fault.NotFound) {
		return DataObject{}, contact.NotFound(id)
	}
	return o, err
}

// store puts the contact into the transaction: created if it is new, else in the
// place of the state that was read; with its tombstone if it was deleted.
func (r *ContactRepository) store(ctx context.Context, t *trackedContact, commit contact.Commit) error {
	o, err := encodeContact(commit.State, r.documents.options.DeletedTTL)
	if err != nil {
		return err
	}
	if commit.Create {
		return r.documents.Create(o)
	}
	o.ETag = t.etag
	if err := r.documents.Update(o); err != nil {
		return err
	}
	return r.bury(ctx, commit.State)
}

// confirm makes sure that the contacts are as they were read. A command that
// changes nothing is not checked by a write, and may have seen a replica that
// lags behind.
func (r *ContactRepository) confirm(ctx context.Context) error {
	for _, t := range r.tracked {
		id := t.contact.ID()
		o, err := r.documents.readPrimary(ctx, partitionKeyOf(id), id.String())
		if fault.Is(err, fault.NotFound) {
			return contact.NotFound(id)
		}
		if err != nil {
			return err
		}
		if o.ETag != t.etag {
			return errChanged
		}
	}
	return nil
}

func (r *ContactRepository) find(id uuid.UUID) *trackedContact {
	for _, t := range r.tracked {
		if t.contact.ID() == id {
			return t
		}
	}
	return nil
}

// etag returns the ETag of the one contact of the unit of work; empty if there is
// another number of them.
func (r *ContactRepository) etag() string {
	if len(r.tracked) != 1 {
		return ""
	}
	return string(r.tracked[0].etag)
}

func rehydrate(id uuid.UUID, o DataObject) (*trackedContact, error) {
	state, isContact, err := decodeContact(o)
	if err != nil {
		return nil, err
	}
	if !isContact {
		return nil, contact.NotFound(id)
	}
	c, err := contact.Rehydrate(state)
	if err != nil {
		return nil, err
	}
	return &trackedContact{contact: c, etag: o.ETag}, nil
}

// matches evaluates If-Match (RFC 9110 13.1.1) for a document that exists.
func matches(ifMatch []string, etag azcore.ETag) bool {
	return len(ifMatch) == 0 || slices.Contains(ifMatch, "*") || slices.Contains(ifMatch, string(etag))
}
