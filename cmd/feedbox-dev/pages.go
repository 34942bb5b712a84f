package main

import (
	"context"
	"html/template"
	"log/slog"
	"net"
	"slices"

	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/page"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/wiring"
)

// newPage returns the web page of feedbox-dev: operations, "Try it" and sections. Actions
// are allowed, because they affect only this machine.
func newPage(environ []string, l net.Listener, emulators *emulators, e *endpoints, seen *seenEvents, log *slog.Logger, sections ...page.Section) (*wiring.Page, error) {
	// The page has no prefix, so links begin with a slash.
	metrics := e.Ops + "/metrics"
	hint := template.HTML(`Create contacts, or break an event, with <a href="/try">Try it</a>. To inject faults under load, with a live verdict, run <code>` +
		template.HTMLEscapeString(playCommand()) + `</code>.`) //nolint:gosec // escaped
	for _, address := range e.relayOps {
		metrics += ",http://" + address + "/metrics"
		hint = `Load runs all the time. <a href="/play">Inject faults in the playground</a>: it verifies continuously that no event is lost, doubled or out of order.`
	}
	environ = slices.Concat(environ, e.environ(), []string{
		"FEEDBOX_CONSOLE_LISTEN=" + l.Addr().String(), "FEEDBOX_CONSOLE_METRICS=" + metrics,
		"FEEDBOX_CONSOLE_MANAGEMENT=" + e.ServiceBusAdmin, "FEEDBOX_CONSOLE_WINDOW=" + duplicateWindow.String(),
	})
	cfg, err := config.LoadConsole(environ)
	if err != nil {
		return nil, err
	}
	relay, err := config.LoadRelay(environ)
	if err != nil {
		return nil, err
	}
	try := &trying{e: e, seen: seen}
	return wiring.NewPage(cfg, relay, wiring.Params{Log: log, Version: console.Version(), CosmosTransport: emulators.cosmos.HTTPClient()}, wiring.PageOptions{
		Title: "feedbox-dev", Actions: true, Receipts: seen, Hint: hint,
		After: append([]page.Section{try.section()}, sections...),
		Links: []page.Link{{Title: "API", URL: e.API + "/docs"}, {Title: "Metrics", URL: e.Ops + "/metrics"}},
	})
}

// servePage serves a page while until runs.
func servePage(ctx context.Context, p *wiring.Page, l net.Listener, until func(ctx context.Context) error) error {
	group, inside := errgroup.WithContext(ctx)
	serving, end := context.WithCancel(ctx)
	group.Go(func() error { return p.Run(serving, l) })
	group.Go(func() error {
		defer end()
		return until(inside)
	})
	return group.Wait()
}
