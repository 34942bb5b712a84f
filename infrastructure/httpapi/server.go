package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/httpapi/hostguard"
	"feedbox/infrastructure/httpapi/limit"
)

// Server serves resources. It is safe for concurrent use.
type Server struct {
	options     Options
	name        string // in errors
	collections []*collection
	observer    *observer
	rates       *limit.Rates  // nil means unlimited
	inFlight    *limit.Places // of requests whose body has arrived
	handler     http.Handler
}

// New returns a server of the resources. The error lists every invalid option and resource.
func New(resources []Resource, options *Options) (*Server, error) {
	o, err := options.withDefaults()
	faults := []error{err}
	inFlight := o.MaxInFlight
	if o.MaxConnections > 0 { // otherwise one caller's half of the places could be all connections
		inFlight = min(inFlight, o.MaxConnections)
	}
	s := &Server{options: o, inFlight: limit.NewPlaces(inFlight)}
	for _, one := range resources {
		c, wrong := newCollection(s, one)
		s.collections, faults = append(s.collections, c), append(faults, wrong...)
	}
	all := wordsOf(s.collections)
	s.name = strings.TrimSpace(all.plural + " API")
	s.options.Title = cmp.Or(o.Title, "Feedbox "+all.plural)
	s.options.Description = cmp.Or(o.Description, all.say("{Plural} whose every change is published as an event. Changes and events are stored in one transaction."))
	routes, err := s.routes()
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	if s.observer, err = newObserver(&s.options); err != nil {
		return nil, err
	}
	if o.RateLimit > 0 {
		s.rates = limit.NewRates(o.RateLimit, o.RateBurst)
	}
	document, err := openAPI(s, routes)
	if err != nil {
		return nil, err
	}
	documents := docs(s.options.Title)
	documents[pathOpenAPI] = serveOpenAPI(document)
	if o.Home != nil {
		documents["/{$}"] = o.Home
	}
	s.handler = s.observer.wrap(s.dispatcher(routes, documents))
	return s, nil
}

// Handler returns the API without a listener, for tests and other servers.
func (s *Server) Handler() http.Handler { return s.handler }

// Run serves on listener until ctx ends, then drains requests in flight within the drain
// timeout. It owns the listener. It returns nil after a clean shutdown, and an error if
// serving failed or requests were aborted.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	if s == nil || s.handler == nil {
		return errors.Join(errors.New("httpapi: the Server is not made by New"), listener.Close())
	}
	if len(s.options.TokenKeys) == 0 {
		s.options.Logger.WarnContext(ctx, "no token key configured: continuation tokens are valid only in this process, until it restarts")
	}
	allowed := s.options.AllowedHosts
	if public, err := url.Parse(s.options.PublicURL); err == nil { // New has checked it
		allowed = append(slices.Clone(allowed), public.Host)
	}
	anonymous := 0
	if _, open := s.options.Auth.(auth.Open); open {
		anonymous = -1 // no one has a name
	}
	if err := limit.Serve(ctx, listener, hostguard.Handler(s.handler, listener, allowed...), &limit.Options{
		Connections: s.options.MaxConnections, PerAddress: s.options.MaxConnectionsPerAddress, Drain: s.options.DrainTimeout, Logger: s.options.Logger,
		Anonymous: anonymous,
	}); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}
