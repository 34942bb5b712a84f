package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/infrastructure/cosmos/internal/store"
)

// ContactReader reads contacts for queries. It is safe for concurrent use.
type ContactReader struct {
	container *azcosmos.ContainerClient
}

var _ query.ContactReader = (*ContactReader)(nil)

// NewContactReader returns a reader of the contacts in container.
func NewContactReader(container *azcosmos.ContainerClient) (*ContactReader, error) {
	if container == nil {
		return nil, errors.New("cosmos: a contact reader needs a container")
	}
	return &ContactReader{container: container}, nil
}

// Read implements query.ContactReader.
func (r *ContactReader) Read(ctx context.Context, id uuid.UUID, ifNoneMatch, session string) (query.Found, error) {
	token, err := store.ParseSession(session)
	if err != nil {
		return query.Found{}, err
	}
	what := "read contact " + id.String()
	if ifNoneMatch != "" {
		// The SDK has no option for it. It passes the 304 on as a success without a body.
		ctx = policy.WithHTTPHeader(ctx, http.Header{"If-None-Match": {ifNoneMatch}})
	}
	reply, err := r.container.ReadItem(ctx, keyValue(partitionKeyOf(id)), id.String(), &azcosmos.ItemOptions{SessionToken: token.Option()})
	if err != nil {
		if err = store.AsFault(what, err); fault.Is(err, fault.NotFound) {
			return query.Found{}, contact.NotFound(id)
		}
		return query.Found{}, err
	}
	if reply.SessionToken != nil {
		token.Merge(*reply.SessionToken)
	}
	if reply.RawResponse != nil && reply.RawResponse.StatusCode == http.StatusNotModified {
		return query.Found{}, fault.New(fault.NotModified, "", "the contact has not changed")
	}
	o, err := decodeObject(reply.Value)
	if err != nil {
		return query.Found{}, fmt.Errorf("%s: %w", what, err)
	}
	state, isContact, err := decodeContact(o)
	if err != nil {
		return query.Found{}, err
	}
	if !isContact {
		return query.Found{}, contact.NotFound(id)
	}
	return query.Found{State: state, ETag: string(o.ETag), SessionToken: token.String()}, nil
}
