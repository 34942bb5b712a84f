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
	token, err := parseSessionToken(session)
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
func (r *ContactReader) fetch(ctx context.Context, size int, page *query.ContactPage, token *sessionToken) error {
	options := &azcosmos.QueryOptions{
		PageSizeHint:    int32(size), //nolint:gosec // at most query.MaxPageSize
		SessionToken:    token.option(),
		QueryParameters: []azcosmos.QueryParameter{{Name: "@type", Value: typeContact}},
	}
	if page.Continuation != "" {
		options.ContinuationToken = &page.Continuation
	}
	reply, err := r.container.NewQueryItemsPager(pageQuery, azcosmos.NewPartitionKey(), options).NextPage(ctx)
	if err != nil {
		return pageFault("read a page of contacts", err, page.Continuation)
	}
	token.merge(header(reply.RawResponse, headerSessionToken))
	for _, raw := range reply.Items {
		var item pageItem
		if err := json.Unmarshal(raw, &item); err != nil {
			return fmt.Errorf("read a page of contacts: decode an item: %w", err)
		}
		page.Items = append(page.Items, item.view())
	}
	page.Continuation = ""
	if reply.ContinuationToken != nil {
		page.Continuation = *reply.ContinuationToken
	}
	return nil
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
			"the continuation is not one this service has issued; start from the first page", fmt.Errorf("%s: %w", what, responseCause(reply)))
	}
	return asFault(what, err)
}
