package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/query"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// maxFetches is the maximum number of store pages that make one page. The store may return short
// or even empty pages, for example at the end of a physical partition.
const maxFetches = 10

// Listing defines how aggregates of one kind are listed: encoding/json decodes the results of
// the query into rows R, and Item returns their items I.
type Listing[R, I any] struct {
	// Query selects the documents of the type in its parameter @type. The gateway must be able
	// to serve it across partitions: a filter and a projection, no order (REST reference,
	// "Queries that cannot be served by gateway").
	Query string
	// Type is the document type of the kind.
	Type string
	// Item returns the item of a row. Its error fails the page.
	Item func(row R) (I, error)
}

// Pager reads a listing page by page. It is safe for concurrent use.
type Pager[R, I any] struct {
	container *azcosmos.ContainerClient
	listing   Listing[R, I]
}

// NewPager returns a pager over a listing of container.
func NewPager[R, I any](container *azcosmos.ContainerClient, l Listing[R, I]) (*Pager[R, I], error) {
	if container == nil || l.Query == "" || l.Type == "" || l.Item == nil {
		return nil, errors.New("cosmos: a pager needs a container, and a listing with Query, Type and Item")
	}
	return &Pager[R, I]{container: container, listing: l}, nil
}

// Page implements query.Pager. The continuation is that of the store, always at the end of one
// of its pages, so no item is repeated or skipped.
func (p *Pager[R, I]) Page(ctx context.Context, size int, continuation, session string) (query.Page[I], error) {
	token, err := store.ParseSession(session)
	if err != nil {
		return query.Page[I]{}, err
	}
	page := query.Page[I]{Items: make([]I, 0, size), Continuation: continuation}
	of := documents{what: "read a page of type " + p.listing.Type, query: p.listing.Query, key: azcosmos.NewPartitionKey(), kind: p.listing.Type}
	for range maxFetches {
		page.Continuation, err = readPage(ctx, p.container, of, size-len(page.Items), page.Continuation, &token, func(row R) error {
			item, err := p.listing.Item(row)
			page.Items = append(page.Items, item)
			return err
		})
		if err != nil {
			return query.Page[I]{}, err
		}
		if page.Continuation == "" || len(page.Items) >= size {
			break
		}
	}
	page.SessionToken = token.String()
	return page, nil
}

// documents is a query for documents of a type, in one partition key or in all.
type documents struct {
	what  string // for error texts
	query string
	key   azcosmos.PartitionKey
	kind  string
}

// readPage calls visit for each document of one store page of at most size documents. It returns
// the continuation; "" after the last page.
func readPage[T any](ctx context.Context, container *azcosmos.ContainerClient, of documents, size int, continuation string, token *store.Session, visit func(T) error) (string, error) {
	options := &azcosmos.QueryOptions{
		PageSizeHint:    int32(size), //nolint:gosec // at most query.MaxPageSize
		SessionToken:    token.Option(),
		QueryParameters: []azcosmos.QueryParameter{{Name: "@type", Value: of.kind}},
	}
	if continuation != "" {
		options.ContinuationToken = &continuation
	}
	reply, err := container.NewQueryItemsPager(of.query, of.key, options).NextPage(ctx)
	if err != nil {
		return "", pageFault(of.what, err, continuation)
	}
	token.Merge(store.Header(reply.RawResponse, store.HeaderSession))
	for _, raw := range reply.Items {
		var item T
		if err := json.Unmarshal(raw, &item); err != nil {
			return "", fmt.Errorf("%s: decode an item: %w", of.what, err)
		}
		if err := visit(item); err != nil {
			return "", fmt.Errorf("%s: %w", of.what, err)
		}
	}
	if reply.ContinuationToken == nil {
		return "", nil
	}
	return *reply.ContinuationToken, nil
}

// pageFault blames the continuation for a refused query, because the rest of the query is always
// the same.
func pageFault(what string, err error, continuation string) error {
	var reply *azcore.ResponseError
	if continuation != "" && errors.As(err, &reply) && reply.StatusCode == http.StatusBadRequest {
		return fault.Wrap(fault.Invalid, "invalid_continuation",
			"the continuation is not one this service has issued; start from the first page", fmt.Errorf("%s: %w", what, store.Cause(reply)))
	}
	return store.AsFault(what, err)
}
