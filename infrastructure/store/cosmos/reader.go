package cosmos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// View defines how aggregates of one kind are read as states S. All fields except Noun are
// required.
type View[S any] struct {
	// Type is the document type of the kind.
	Type string
	// Noun names such an aggregate in faults. Default: Type.
	Noun string
	// Decode returns the state, the id and the deletion mark in data. It may share the memory
	// of data.
	Decode func(data []byte) (s S, id uuid.UUID, deleted bool, err error)
}

// Reader reads aggregates of one kind for queries. It is safe for concurrent use.
type Reader[S any] struct {
	container *azcosmos.ContainerClient
	view      View[S]
}

// NewReader returns a reader of the aggregates in container.
func NewReader[S any](container *azcosmos.ContainerClient, v View[S]) (*Reader[S], error) {
	if container == nil || v.Type == "" || v.Decode == nil {
		return nil, errors.New("cosmos: a reader needs a container, and a view with Type and Decode")
	}
	v.Noun = cmp.Or(v.Noun, v.Type)
	return &Reader[S]{container: container, view: v}, nil
}

// Read implements query.Reader.
func (r *Reader[S]) Read(ctx context.Context, id uuid.UUID, ifNoneMatch, session string) (query.Found[S], error) {
	token, err := store.ParseSession(session)
	if err != nil {
		return query.Found[S]{}, err
	}
	what := "read " + r.view.Noun + " " + id.String()
	if ifNoneMatch != "" {
		// A header, because the SDK has no option for it. The SDK returns a 304 as a success without a body.
		ctx = policy.WithHTTPHeader(ctx, http.Header{"If-None-Match": {ifNoneMatch}})
	}
	reply, err := r.container.ReadItem(ctx, keyValue(partitionKeyOf(id)), id.String(), &azcosmos.ItemOptions{SessionToken: token.Option()})
	if err != nil {
		if err = store.AsFault(what, err); fault.Is(err, fault.NotFound) {
			return query.Found[S]{}, fault.Missing(r.view.Noun, id.String())
		}
		return query.Found[S]{}, err
	}
	if reply.SessionToken != nil {
		token.Merge(*reply.SessionToken)
	}
	if reply.RawResponse.StatusCode == http.StatusNotModified {
		return query.Found[S]{}, fault.New(fault.NotModified, "", "the "+r.view.Noun+" has not changed")
	}
	o, err := decodeObject(reply.Value)
	if err != nil {
		return query.Found[S]{}, fmt.Errorf("%s: %w", what, err)
	}
	if o.Type != r.view.Type {
		return query.Found[S]{}, fault.Missing(r.view.Noun, id.String())
	}
	found := query.Found[S]{ETag: string(o.ETag), SessionToken: token.String()}
	var inside uuid.UUID
	if found.State, inside, found.Deleted, err = r.view.Decode(o.Data); err != nil {
		return query.Found[S]{}, fmt.Errorf("decode %s %s: %w", r.view.Noun, o.ID, err)
	}
	if inside.String() != o.ID {
		return query.Found[S]{}, fmt.Errorf("decode %s %s: its data has the id %s", r.view.Noun, o.ID, inside)
	}
	return found, nil
}
