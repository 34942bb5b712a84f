// Package api offers orders to REST clients.
package api

import (
	"context"
	"feedbox"
	"feedbox/infrastructure/httpapi"
	"time"

	"github.com/google/uuid"

	"example.com/orders/order"
	"example.com/orders/store"
)

// view is an order as clients see it.
type view struct {
	ID       uuid.UUID    `json:"id" doc:"id of the order"`
	Customer string       `json:"customer" doc:"name of the customer"`
	Status   order.Status `json:"status" doc:"open, shipped or cancelled"`
	Lines    []order.Line `json:"lines" doc:"ordered goods"`
	Total    int64        `json:"total" doc:"in cents"`
	Version  int64        `json:"version" doc:"rises by one with each change"`
}

func viewOf(root feedbox.Snapshot, s order.State) view {
	return view{ID: root.ID, Customer: s.Customer, Status: s.Status, Lines: s.Lines, Total: s.Total(), Version: root.Version}
}

// placeBody is the body of POST /api/orders.
type placeBody struct{ customer string }

func (b *placeBody) Members() []httpapi.Member {
	return []httpapi.Member{httpapi.Text("customer", nil, &b.customer)}
}

func (b *placeBody) Check() error { return order.CheckCustomer(b.customer) }

// addBody is the body of POST /api/orders/{id}/add.
type addBody struct {
	sku           string
	pieces, price int64
}

func (b *addBody) Members() []httpapi.Member {
	return []httpapi.Member{
		httpapi.Text("sku", nil, &b.sku), httpapi.Integer("pieces", nil, &b.pieces), httpapi.Integer("price", nil, &b.price),
	}
}

func (b *addBody) Check() error { return order.CheckLine(b.sku, b.pieces, b.price) }

// Resource returns the REST resource of orders.
func Resource(orders *store.Orders) httpapi.Resource {
	a := api{orders}
	return httpapi.Resource{Noun: store.Type, Routes: []httpapi.Route{
		httpapi.Create(httpapi.Operation{Event: order.Placed{}.Action()}, a.place),
		httpapi.Read(httpapi.Operation{}, a.read),
		httpapi.List(httpapi.Operation{}, a.list),
		httpapi.Change("add", httpapi.Operation{Summary: "Add goods", Event: order.LineAdded{}.Action()}, a.add),
		httpapi.Act("ship", httpapi.Operation{Summary: "Ship the goods", Event: order.Shipped{}.Action()}, a.act("Ship", (*order.Order).Ship)),
		httpapi.Act("cancel", httpapi.Operation{Summary: "Call the order off", Event: order.Cancelled{}.Action()}, a.act("Cancel", (*order.Order).Cancel)),
	}}
}

// api handles requests with the orders of the store.
type api struct{ *store.Orders }

func (a api) place(ctx context.Context, b *placeBody, in httpapi.Creation) (httpapi.Created[view], error) {
	made, err := a.Create(ctx, feedbox.Creation[*order.Order]{
		IfMatch: in.IfMatch, SessionToken: in.SessionToken, Sender: in.Sender, Parts: []any{"Place", b.customer},
		Make: func(id uuid.UUID, requestHash string) (*order.Order, error) {
			return order.Place(id, requestHash, b.customer, a.Now())
		},
	})
	if err != nil {
		return httpapi.Created[view]{}, err
	}
	root := made.Aggregate.Snapshot()
	return httpapi.Created[view]{
		ID: root.ID, View: viewOf(root, made.Aggregate.State()), ETag: made.ETag, SessionToken: made.SessionToken, Replayed: made.Replayed,
	}, nil
}

func (a api) add(ctx context.Context, b *addBody, target feedbox.Target) (feedbox.Updated, error) {
	return a.Update(ctx, target, func(o *order.Order) error { return o.Add(b.sku, b.pieces, b.price, a.Now()) }, "Add", b.sku, b.pieces, b.price)
}

// act returns the operation that calls a verb without a body.
func (a api) act(name string, verb func(o *order.Order, now time.Time) error) func(context.Context, feedbox.Target) (feedbox.Updated, error) {
	return func(ctx context.Context, target feedbox.Target) (feedbox.Updated, error) {
		return a.Update(ctx, target, func(o *order.Order) error { return verb(o, a.Now()) }, name)
	}
}

func (a api) read(ctx context.Context, in feedbox.Read) (httpapi.Found[view], error) {
	found, err := a.One(ctx, in)
	return httpapi.Found[view]{View: viewOf(found.State.Root, found.State.State), ETag: found.ETag, SessionToken: found.SessionToken}, err
}

func (a api) list(ctx context.Context, in httpapi.Listing) (feedbox.Page[view], error) {
	page, err := a.Reader.Page(ctx, in.PageSize, in.Continuation, in.SessionToken)
	return feedbox.MapPage(page, func(o feedbox.Listed[order.State]) view { return viewOf(o.Root, o.State) }), err
}
