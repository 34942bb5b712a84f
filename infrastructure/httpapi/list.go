package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"feedbox/application/query"
)

// Listing requests one page.
type Listing struct {
	// PageSize is 1 to query.MaxPageSize.
	PageSize int
	// Continuation is the query.Page.Continuation of the previous page; empty for the first
	// page. Clients get it sealed.
	Continuation string
	// SessionToken is the client's session; it may be empty.
	SessionToken string
}

type pageView[I any] struct {
	Items    []I    `json:"items" doc:"the {plural} of this page, in undefined order"`
	HasMore  bool   `json:"hasMore" doc:"whether there is a next page; it may turn out to be empty"`
	NextLink string `json:"nextLink,omitempty" doc:"address of the next page, absolute or relative to this one; absent on the last"`
}

// List is GET on the path of the resource. It answers 200 with one page of items. An item
// may have fewer members than the view of Read.
func List[I any](op Operation, do func(ctx context.Context, in Listing) (query.Page[I], error)) Route {
	if do == nil {
		return noFunction("List")
	}
	return Route{bind: func(c *collection) route {
		return route{
			method: http.MethodGet, path: c.Path,
			handle: func(w http.ResponseWriter, r *http.Request) error { return serveList(c, w, r, do) },
			doc: c.document(op, Operation{
				ID: "list{Plural}", Summary: "List {plural}",
				Description: "Deleted {plural} are omitted. The order is not defined. Follow nextLink, or send the continuation token, until hasMore is false.",
				Reply:       "One page of {plural}.",
			}, operation{
				parameters: pageParameters,
				replies: []replyDoc{
					{http.StatusOK, "", &viewDoc{c.say("{Noun}Page"), reflect.TypeFor[pageView[I]](), c.words}, []string{headerContinuation, headerSession}},
				},
				problems: []int{http.StatusBadRequest},
			}),
		}
	}}
}

func serveList[I any](c *collection, w http.ResponseWriter, r *http.Request, do func(context.Context, Listing) (query.Page[I], error)) error {
	listing, err := c.listingOf(r)
	if err != nil {
		return err
	}
	page, err := do(r.Context(), listing)
	if err != nil {
		return err
	}
	view := pageView[I]{Items: page.Items, HasMore: page.Continuation != ""}
	if view.Items == nil {
		view.Items = []I{}
	}
	if view.HasMore {
		view.NextLink = c.setNext(w.Header(), r, listing, page.Continuation)
	}
	setState(w.Header(), "", page.SessionToken)
	writeJSON(w, http.StatusOK, mediaJSON, view)
	return nil
}
