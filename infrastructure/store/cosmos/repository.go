package cosmos

import (
	"context"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
)

// tracked is an aggregate of a unit of work with the ETag it was read with.
type tracked[A aggregate.Aggregate] struct {
	aggregate A
	etag      azcore.ETag // empty: not stored yet
}

// Add implements command.UnitOfWork.
func (w *UnitOfWork[A]) Add(ctx context.Context, a A) error {
	if w.find(a.ID()) != nil {
		return fmt.Errorf("add %s %s: the unit of work has it already", w.kind.Noun, a.ID())
	}
	if err := w.succeed(ctx, a); err != nil {
		return err
	}
	w.tracked = append(w.tracked, &tracked[A]{aggregate: a})
	return nil
}

// Read implements command.UnitOfWork. It returns the same aggregate each time.
func (w *UnitOfWork[A]) Read(ctx context.Context, id uuid.UUID, ifMatch []string) (A, error) {
	found := w.find(id)
	if found == nil {
		var none A
		o, err := w.read(ctx, id, ifMatch)
		if err != nil {
			return none, err
		}
		a, err := aggregateOf(w.kind, id, o)
		if err != nil {
			return none, err
		}
		found = &tracked[A]{aggregate: a, etag: o.ETag}
		w.tracked = append(w.tracked, found)
	}
	if !found.aggregate.Deleted() && !matches(ifMatch, found.etag) {
		var none A
		return none, w.kind.ChangedByAnother()
	}
	return found.aggregate, nil
}

// read asks any replica first. It asks the primary when that answer would refuse
// the command: the replica may lag behind.
func (w *UnitOfWork[A]) read(ctx context.Context, id uuid.UUID, ifMatch []string) (DataObject, error) {
	o, err := w.documents.read(ctx, partitionKeyOf(id), id.String())
	switch {
	case fault.Is(err, fault.NotFound), err == nil && !matches(ifMatch, o.ETag):
		o, err = w.documents.readPrimary(ctx, partitionKeyOf(id), id.String())
	}
	if fault.Is(err, fault.NotFound) {
		return DataObject{}, w.kind.NotFound(id)
	}
	return o, err
}

// store puts the aggregate into the transaction: created if it is new, else in the
// place of the state that was read; with its tombstone if it was deleted.
func (w *UnitOfWork[A]) store(ctx context.Context, t *tracked[A], commit aggregate.Commit) error {
	o, err := documentOf(w.kind, t.aggregate, commit)
	if err != nil {
		return err
	}
	if commit.Create {
		return w.documents.Create(o)
	}
	o.ETag = t.etag
	if err := w.documents.Update(o); err != nil {
		return err
	}
	return w.bury(ctx, t.aggregate, commit)
}

// confirm makes sure that the aggregates are as they were read. A command that
// changes nothing is not checked by a write, and may have seen a replica that
// lags behind.
func (w *UnitOfWork[A]) confirm(ctx context.Context) error {
	for _, t := range w.tracked {
		id := t.aggregate.ID()
		o, err := w.documents.readPrimary(ctx, partitionKeyOf(id), id.String())
		if fault.Is(err, fault.NotFound) {
			return w.kind.NotFound(id)
		}
		if err != nil {
			return err
		}
		if o.ETag != t.etag {
			return w.kind.ChangedByAnother()
		}
	}
	return nil
}

func (w *UnitOfWork[A]) find(id uuid.UUID) *tracked[A] {
	for _, t := range w.tracked {
		if t.aggregate.ID() == id {
			return t
		}
	}
	return nil
}

// etag returns the ETag of the one aggregate of the unit of work; empty if there is
// another number of them.
func (w *UnitOfWork[A]) etag() string {
	if len(w.tracked) != 1 {
		return ""
	}
	return string(w.tracked[0].etag)
}

// matches evaluates If-Match (RFC 9110 13.1.1) for a document that exists.
func matches(ifMatch []string, etag azcore.ETag) bool {
	return len(ifMatch) == 0 || slices.Contains(ifMatch, "*") || slices.Contains(ifMatch, string(etag))
}
