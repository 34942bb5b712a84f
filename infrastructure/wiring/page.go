package wiring

import (
	"context"
	"errors"
	"html/template"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
	"feedbox/infrastructure/page/operations"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/monitor"
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
	probes     *httpapi.Ops
	probed     net.Listener // nil: no probes
}

// NewPage returns the page of the relays with the configuration relay, and its probes if p
// has a socket for them. It does not connect.
func NewPage(cfg *config.Console, relay *config.Relay, p Params, o PageOptions) (*Page, error) {
	who, err := authenticator(cfg.Auth, cfg.APIKeys, &auth.EntraOptions{RolesOfUsers: true})
	if err != nil {
		return nil, err
	}
	store := stores[relay.Store.Kind]
	needs := monitor.NewDependencies(time.Now, store.name())
	op, err := operatorFor(relay, p, use{note: needs[store.name()].Note})
	if err != nil {
		return nil, err
	}
	metrics := make([]string, len(cfg.Metrics))
	for i, address := range cfg.Metrics {
		metrics[i] = string(address)
	}
	ops := operations.New(operations.Options{
		Port: operations.NewPort(op), Metrics: metrics, Container: relay.Cosmos.Container, Management: string(cfg.Management), Window: cfg.Window, TraceURL: string(cfg.TraceURL), Receipts: o.Receipts,
		Hint: o.Hint,
	})
	front, err := page.New(&page.Options{
		Title: o.Title, Prefix: cfg.Prefix, Sections: append(ops.Sections(), o.After...), Links: o.Links, Actions: o.Actions,
		Auth: who, AllowedHosts: allowedHosts(cfg.AllowedHosts, cfg.Listen, cfg.Auth.Insecure), Log: p.Log,
		MaxConnections: cfg.MaxConnections, MaxConnectionsPerAddress: cfg.PerAddress,
	})
	if err != nil {
		return nil, errors.Join(err, op.Close(context.Background())) //nolint:forbidigo // Close has a limit
	}
	// The page is ready while it serves, also during an outage of the store: it then shows the
	// outage. Without metrics: the store's state is only known while the page is open, so a
	// gauge of it would keep an alert firing after the tab is closed.
	probes := httpapi.NewOps(&httpapi.OpsOptions{Dependencies: dependencies(needs), AllowedHosts: allowedHosts(cfg.AllowedHosts, cfg.OpsListen, false), Logger: p.Log})
	return &Page{page: front, operations: ops, operator: op, probes: probes, probed: p.Ops}, nil
}

// Run serves the page on listener, which it owns, until ctx ends. The probes report the stop
// first and end last.
func (p *Page) Run(ctx context.Context, listener net.Listener) error {
	defer func() { _ = p.operator.Close(ctx) }() // its error does not matter after the page has ended
	group, inside := errgroup.WithContext(ctx)
	probing, endProbes := context.WithCancel(context.WithoutCancel(ctx))
	defer endProbes()
	if p.probed != nil {
		group.Go(func() error { return p.probes.Run(probing, p.probed) })
	}
	group.Go(func() error {
		<-inside.Done()
		p.probes.Drain()
		return nil
	})
	group.Go(func() error { return p.operations.Run(inside) })
	group.Go(func() error {
		defer endProbes()
		return p.page.Run(inside, listener)
	})
	return group.Wait()
}
