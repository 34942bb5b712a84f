package contact_test

import (
	"testing"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/contact"
)

func TestNewContactContinuesSequenceOfDeletedOne(t *testing.T) {
	t.Parallel()
	details := exampleDetails()
	details.RequestHash = "a1b2c3"
	first, err := contact.New(exampleID, details, uuid.New(), start)
	if err != nil {
		t.Fatal(err)
	}
	commit := func(c *contact.Contact) aggregate.Commit {
		pending, changed := c.Pending()
		if !changed {
			t.Fatal("nothing is pending")
		}
		c.Committed(pending)
		return pending
	}
	commit(first)
	if _, needed := first.Tombstone(aggregate.Commit{}); needed {
		t.Error("a tombstone for a contact that is not deleted")
	}
	if err := first.Delete(uuid.New(), start); err != nil {
		t.Fatal(err)
	}
	tombstone, needed := first.Tombstone(commit(first))
	if want := (aggregate.Tombstone{ID: exampleID, Version: 2, Sequence: 2}); !needed || tombstone != want {
		t.Fatalf("tombstone %+v, %t; want %+v", tombstone, needed, want)
	}

	second, err := contact.New(exampleID, details, uuid.New(), start)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Continue(tombstone); err != nil || !second.IsNew() {
		t.Fatalf("continue: %v, new: %t", err, second.IsNew())
	}
	created := commit(second)
	meta := created.Events[0].Metadata()
	if !created.Create || created.Version != 3 || created.Sequence != 3 || meta.Sequence != 3 || meta.AggregateVersion != 3 || second.IsNew() {
		t.Errorf("created as %+v with %+v", created, meta)
	}
	if err := second.Continue(tombstone); err == nil {
		t.Error("a stored contact accepts a tombstone")
	}
	third, err := contact.New(uuid.New(), details, uuid.New(), start)
	if err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]aggregate.Tombstone{
		"of another": tombstone, "without a version": {ID: third.ID()}, "with sequence below version": {ID: third.ID(), Version: 3, Sequence: 2},
	} {
		if third.Continue(wrong) == nil {
			t.Errorf("a tombstone %s is accepted", name)
		}
	}
}
