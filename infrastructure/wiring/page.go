package wiring

import (
	"context"
	"html/template"
	"net"

	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
	"feedbox/infrastructure/page/operations"
	"feedbox/infrastructure/process/config"
)

// PageOptions configures a page besides its configuration. The zero value is for
// production.
type PageOptions struct {
	Title    string
	Actions  bool                // allow acts
	After    []page.Section      // that follow those of operations
	Links    []page.Link         // to other pages
	Receipts operations.Receipts // of the events that a consumer received
	Hint     template.HTML       // shown on "Now"
}

// Page is the operations page of relays.
type Page struct {
	page       *page.Page
	operations *operations.Operations
	operator   *operator.Operator
}

// NewPage returns the page of the relays with the configuration relay. It does not connect.
func NewPage(cfg *config.Console, relay *config.Relay, p Params, o PageOptions) (*Page, error) {
	who, err := authenticator(cfg.Auth)
	if err != nil {
		return nil, err
	}
	op, err := Operator(relay, p)
	if err != nil {
		return nil, err
	}
	ops := operations.New(operations.Options{
		Port: operations.NewPort(op), Metrics: cfg.Metrics, Management: cfg.Management, Window: cfg.Window, TraceURL: cfg.TraceURL, Receipts: o.Receipts,
		Hint: o.Hint,
	})
	front, err := page.New(&page.Options{
		Title: o.Title, Prefix: cfg.Prefix, Sections: append(ops.Sections(), o.After...), Links: o.Links, Actions: o.Actions,
		Auth: who, AnyHost: cfg.Auth.Insecure, Log: p.Log,
	})
	if err != nil {
		return nil, err
	}
	return &Page{page: front, operations: ops, operator: op}, nil
}

// Run serves the page on listener, which it owns, until ctx ends.
func (p *Page) Run(ctx context.Context, listener net.Listener) error {
	defer func() { _ = p.operator.Close(ctx) }() // its error does not matter after the page has ended
	group, inside := errgroup.WithContext(ctx)
	group.Go(func() error { return p.operations.Run(inside) })
	group.Go(func() error { return p.page.Run(inside, listener) })
	return group.Wait()
}
