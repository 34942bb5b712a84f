package main

import (
	"context"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/page"
)

// newPage is what feedbox-dev shows in a browser. Acts are allowed: all there is to harm is
// on this machine.
func newPage(e *endpoints, log *slog.Logger, sections ...page.Section) (*page.Page, error) {
	return page.New(&page.Options{
		Title: "feedbox-dev", Actions: true, Log: log, Sections: sections,
		Links: []page.Link{{Title: "API", URL: e.API + "/docs"}},
	})
}

// servePage serves a page while until runs.
func servePage(ctx context.Context, p *page.Page, l net.Listener, until func(ctx context.Context) error) error {
	group, inside := errgroup.WithContext(ctx)
	serving, end := context.WithCancel(ctx)
	group.Go(func() error { return p.Run(serving, l) })
	group.Go(func() error {
		defer end()
		return until(inside)
	})
	return group.Wait()
}
