package wiring

import (
	"context"
	"net"

	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
	"feedbox/infrastructure/page/operations"
	"feedbox/infrastructure/process/config"
)

// PageOptions are what a page has besides its configuration. The zero value is that of
// production.
type PageOptions struct {
	// Title is the name of the page.
	Title string
	// Actions allows acts.
	Actions bool
	// Before and After are sections around those of operations.
	Before, After []page.Section
	// Links lead to other pages.
	Links []page.Link
	// Receipts knows the events that a consumer received.
	Receipts operations.Receipts
}

// Page is the operations page of the relays that relay configures.
type Page struct {
	page       *page.Page
	operations *operations.Operations
	operator   *operator.Operator
}

// NewPage connects nothing yet.
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
		Port: operations.NewPort(op), Metrics: cfg.Metrics, Management: cfg.Management, Window: cfg.Window, Receipts: o.Receipts,
	})
	sections := append(append(o.Before, ops.Sections()...), o.After...)
	front, err := page.New(&page.Options{
		Title: o.Title, Prefix: cfg.Prefix, Sections: sections, Links: o.Links, Actions: o.Actions,
		Auth: who, AnyHost: cfg.Auth.Insecure, Log: p.Log,
	})
	if err != nil {
		return nil, err
	}
	return &Page{page: front, operations: ops, operator: op}, nil
}

// Run serves the page on listener, which it owns, until ctx ends.
func (p *Page) Run(ctx context.Context, listener net.Listener) error {
	defer func() { _ = p.operator.Close(ctx) }() // nothing waits for it any more
	group, inside := errgroup.WithContext(ctx)
	group.Go(func() error { return p.operations.Run(inside) })
	group.Go(func() error { return p.page.Run(inside, listener) })
	return group.Wait()
}
