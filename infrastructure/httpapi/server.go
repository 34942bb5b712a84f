package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"feedbox/infrastructure/httpapi/hostguard"
)

// Limits of net/http that no deployment needs to change.
const (
	maxHeaderBytes    = 16 << 10 // the default of net/http is 1 MB
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	idleTimeout       = 120 * time.Second
	// writeMargin is the time to write the answer after RequestTimeout.
	writeMargin = 10 * time.Second
)

// Server serves resources. It is safe for concurrent use.
type Server struct {
	options     Options
	name        string // in errors
	collections []*collection
	observer    *observer
	rates       *rateLimiter // nil means unlimited
	capacity    capacity
	handler     http.Handler
}

// New returns a server of the resources. The error lists every invalid option and resource.
func New(resources []Resource, options *Options) (*Server, error) {
	o, err := options.withDefaults()
	faults := []error{err}
	s := &Server{options: o, capacity: capacity{limit: int64(o.MaxInFlight)}}
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
		s.rates = newRateLimiter(o.RateLimit, o.RateBurst)
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
	limits := limits{connections: s.options.MaxConnections, write: s.options.RequestTimeout + writeMargin, drain: s.options.DrainTimeout}
	allowed := s.options.AllowedHosts
	if public, err := url.Parse(s.options.PublicURL); err == nil { // New has checked it
		allowed = append(slices.Clone(allowed), public.Host)
	}
	if err := serve(ctx, listener, hostguard.Handler(s.handler, listener, allowed...), s.options.Logger, limits); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// limits holds the limits that differ between the servers of this package.
type limits struct {
	connections  int           // open connections
	write, drain time.Duration // timeouts of an answer and of the shutdown
}

// serve runs an http.Server with the limits of this package. Errors of net/http go to
// logger.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, logger *slog.Logger, limits limits) error {
	bounded := newConnections(listener, limits.connections)
	// The end of ctx stops accepting, but requests in flight must complete.
	base := context.WithoutCancel(ctx)
	server := &http.Server{
		Handler:                      handler,
		ReadHeaderTimeout:            readHeaderTimeout,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 limits.write,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		ConnState:                    bounded.observe,
		BaseContext:                  func(net.Listener) context.Context { return base },
		ErrorLog:                     slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		DisableGeneralOptionsHandler: true,
	}
	stopped := make(chan error, 1)
	serving, cancel := context.WithCancel(ctx)
	go func() {
		<-serving.Done()
		within, cancel := context.WithTimeout(base, limits.drain)
		defer cancel()
		err := server.Shutdown(within)
		if err != nil {
			err = errors.Join(fmt.Errorf("requests were aborted after %v: %w", limits.drain, err), server.Close())
		}
		stopped <- err
	}()
	err := server.Serve(bounded)
	cancel()
	if stopErr := <-stopped; errors.Is(err, http.ErrServerClosed) {
		return stopErr
	}
	return err
}
