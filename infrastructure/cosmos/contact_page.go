package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/infrastructure/cosmos/internal/store"
)

// pageQuery is one the gateway serves across partitions by itself: a filter and a
// projection, no order (REST reference, "Queries that cannot be served by gateway").
const pageQuery = `SELECT c.id, c._etag, c.data.email, c.data.name, c.data.company.companyName FROM c ` +
	`WHERE c.type = @type AND c.data.deleted = false`

// maxFetches bounds how many pages of the store one page is put together from.
// The store may answer with short and even empty ones, at least where one
// physical partition ends and the next begins.
const maxFetches = 10

// pageItem is one row of pageQuery.
type pageItem struct {
	ID    uuid.UUID `json:"id"`
	ETag  string    `json:"_etag"`
	Email *string   `json:"email"`
	Name  struct {
		FirstName string `json:"firstName"`
		LastName  string `json:"lastName"`
	} `json:"name"`
	CompanyName string `json:"companyName"`
}

// Page implements query.ContactReader. The continuation is the store's own and
// is always at the end of one of its pages, so no contact is shown twice or
// skipped by it.
func (r *ContactReader) Page(ctx context.Context, size int, continuation, session string) (query.ContactPage, error) {
	token, err := store.ParseSession(session)
	if err != nil {
		return query.ContactPage{}, err
	}
	page := query.ContactPage{Items: make([]query.ContactItem, 0, size), Continuation: continuation}
	for range maxFetches {
		if err := r.fetch(ctx, size-len(page.Items), &page, &token); err != nil {
			return query.ContactPage{}, err
		}
		if page.Continuation == "" || len(page.Items) >= size {
			break
		}
	}
	page.SessionToken = token.String()
	return page, nil
}

// fetch adds one page of the store, of at most size contacts.
func (r *ContactReader) fetch(ctx context.Context, size int, page *query.ContactPage, token *store.Session) (err error) {
	of := documents{what: "read a page of contacts", query: pageQuery, key: azcosmos.NewPartitionKey(), kind: typeContact}
	page.Continuation, err = readPage(ctx, r.container, of, size, page.Continuation, token, func(item pageItem) {
		page.Items = append(page.Items, item.view())
	})
	return err
}

// documents are those of a type that a query selects under a partition key, or under all.
type documents struct {
	what  string // is done, for errors
	query string
	key   azcosmos.PartitionKey
	kind  string
}

// readPage gives visit one page of the store, of at most size documents, and returns where
// the next one begins; "" if there is none.
func readPage[T any](ctx context.Context, container *azcosmos.ContainerClient, of documents, size int, continuation string, token *store.Session, visit func(T)) (string, error) {
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
		visit(item)
	}
	if reply.ContinuationToken == nil {
		return "", nil
	}
	return *reply.ContinuationToken, nil
}

func (i pageItem) view() query.ContactItem {
	full := contact.State{FirstName: i.Name.FirstName, LastName: i.Name.LastName}.FullName()
	return query.ContactItem{ID: i.ID, Email: i.Email, FullName: full, CompanyName: i.CompanyName, ETag: i.ETag}
}

// pageFault blames the continuation for a refused query, as the rest of the query
// is always the same.
func pageFault(what string, err error, continuation string) error {
	var reply *azcore.ResponseError
	if continuation != "" && errors.As(err, &reply) && reply.StatusCode == http.StatusBadRequest {
		return fault.Wrap(fault.Invalid, "invalid_continuation",
			"the continuation is not one this service has issued; start from the first page", fmt.Errorf("%s: %w", what, store.Cause(reply)))
	}
	return store.AsFault(what, err)
}
