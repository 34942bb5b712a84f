package recordstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/fault"
)

// View defines how aggregates of one kind are read as states S and listed as items I. All
// fields except Noun are required.
type View[S, I any] struct {
	// Type is the document type of the kind.
	Type string
	// Noun names such an aggregate in faults. Default: Type.
	Noun string
	// Decode returns the state, the id and the deletion mark in data. It may share the memory
	// of data.
	Decode func(data []byte) (s S, id uuid.UUID, deleted bool, err error)
	// Item returns the item of a state in a listing.
	Item func(s S, etag string) I
}

// Reader reads aggregates of one kind for queries: one by its id, or pages in the order of
// their ids. It is safe for concurrent use.
type Reader[S, I any] struct {
	store Store
	view  View[S, I]
}

// NewReader returns a reader of the aggregates in store.
func NewReader[S, I any](store Store, v View[S, I]) (*Reader[S, I], error) {
	if store == nil || v.Type == "" || v.Decode == nil || v.Item == nil {
		return nil, errors.New("recordstore: a reader needs a store, and a view with Type, Decode and Item")
	}
	v.Noun = cmp.Or(v.Noun, v.Type)
	return &Reader[S, I]{store, v}, nil
}

// Read implements query.Reader.
func (r *Reader[S, I]) Read(ctx context.Context, id uuid.UUID, ifNoneMatch, session string) (found query.Found[S], err error) {
	if err := sessionFault(session); err != nil {
		return found, err
	}
	row, err := r.store.Aggregate(ctx, r.view.Type, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return found, fault.Missing(r.view.Noun, id.String())
	case err != nil:
		return found, err
	}
	found.ETag = etag(row.Version)
	if found.ETag == ifNoneMatch {
		return query.Found[S]{}, fault.New(fault.NotModified, "", "the "+r.view.Noun+" has not changed")
	}
	var inside uuid.UUID
	if found.State, inside, found.Deleted, err = r.view.Decode(row.Data); err == nil && inside != id {
		err = fmt.Errorf("its data has the id %s", inside)
	}
	if err != nil {
		return query.Found[S]{}, fmt.Errorf("decode %s %s: %w", r.view.Noun, id, err)
	}
	return found, nil
}

// Page implements query.Pager. The continuation is the id of the last aggregate of the page.
func (r *Reader[S, I]) Page(ctx context.Context, size int, continuation, session string) (page query.Page[I], err error) {
	if err := sessionFault(session); err != nil {
		return page, err
	}
	after := uuid.Nil
	if continuation != "" {
		if after, err = uuid.Parse(continuation); err != nil {
			return page, continuationFault(err)
		}
	}
	found, err := r.store.Aggregates(ctx, r.view.Type, after, size+1)
	if err != nil {
		return page, err
	}
	if len(found) > size {
		found = found[:size]
		page.Continuation = found[size-1].ID.String()
	}
	page.Items = make([]I, 0, len(found))
	for _, row := range found {
		s, _, _, err := r.view.Decode(row.Data)
		if err != nil {
			return query.Page[I]{}, fmt.Errorf("decode %s %s: %w", r.view.Noun, row.ID, err)
		}
		page.Items = append(page.Items, r.view.Item(s, etag(row.Version)))
	}
	return page, nil
}

func continuationFault(err error) error {
	return fault.Wrap(fault.Invalid, "invalid_continuation", "the continuation is not one this service has issued; start from the first page", err)
}
