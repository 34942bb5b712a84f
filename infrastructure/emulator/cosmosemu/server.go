package cosmosemu

import (
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
	"feedbox/infrastructure/emulator/internal/hooks"
)

// Server is a running emulator. It is safe for concurrent use.
type Server struct {
	options Options
	host    string // host:port clients use
	key     []byte
	store   *store.Store
	auth    authenticator
	clock   atomic.Int64 // nanoseconds Advance has added

	entrances []*entrance
	serving   sync.WaitGroup   // entrances
	inflight  sync.WaitGroup   // requests
	cert      *tls.Certificate // nil without TLS
	regions   []string         // host:port of each region but the first

	hooks hooks.List[Call, Fault]
	lags  lags
	done  chan struct{} // closed by Close, releases what faults hold

	clients clients
	closing sync.Once
	closed  error
}

// instances numbers the emulators of this process, for host names that differ.
var instances atomic.Int64

// Start starts an emulator. It listens when Start returns: build clients after.
func Start(options *Options) (*Server, error) {
	o, err := options.resolve()
	if err != nil {
		return nil, fmt.Errorf("cosmosemu: options: %w", err)
	}
	s := &Server{options: o, done: make(chan struct{})}
	s.key, _ = base64.StdEncoding.DecodeString(o.Key) // resolve has checked it
	s.auth.init(s.key)
	s.auth.resource = s.checkResourceToken
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("cosmosemu: listen: %w", err)
	}
	seed := o.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	s.store, err = store.Open(store.Options{
		Dir: o.DataDir, FS: o.FS, Now: s.now, Logger: o.Logger, Past: o.StaleReads, Random: rand.New(rand.NewPCG(seed, seed)),
	})
	if err != nil {
		return nil, fmt.Errorf("cosmosemu: %w", errors.Join(err, s.closeListeners()))
	}
	s.lags.random = rand.New(rand.NewPCG(seed, seed+1))
	for _, e := range s.entrances {
		s.serving.Go(func() { _ = e.http.Serve(e.listener) }) // ends with ErrServerClosed
	}
	return s, nil
}

// entrance is one address the emulator listens on.
type entrance struct {
	listener net.Listener
	http     *http.Server
}

func (s *Server) listen() error {
	o := &s.options
	main, err := s.mainListener()
	if err != nil {
		return err
	}
	s.host = o.Host
	if s.host == "" {
		s.host = main.Addr().String()
	}
	kind := defaultEntrance
	if o.RoutingGateway {
		kind = routingEntrance
	}
	if err := s.enter(main, gateway{s, kind, 0}); err != nil {
		return err
	}
	if err := s.listenInRegions(kind); err != nil || o.ComputeAddr == "" {
		return err
	}
	compute, err := net.Listen("tcp", o.ComputeAddr) //nolint:noctx // binding does not block
	if err != nil {
		return errors.Join(err, s.closeListeners())
	}
	return s.enter(compute, gateway{s, computeEntrance, 0})
}

func (s *Server) mainListener() (net.Listener, error) {
	switch o := &s.options; {
	case o.Listener != nil:
		return o.Listener, nil
	case o.Network != nil:
		if o.Host == "" {
			o.Host = fmt.Sprintf("cosmos-%d.emulator:8081", instances.Add(1))
		}
		return o.Network.Listen(o.Host)
	default:
		return net.Listen("tcp", o.Addr) //nolint:noctx // binding does not block
	}
}

// enter adds an address to serve, over TLS if that is asked for.
func (s *Server) enter(listener net.Listener, g gateway) (err error) {
	if s.options.TLS {
		if s.cert = cmp.Or(s.cert, s.options.Certificate); s.cert == nil {
			if s.cert, err = newCertificate(s.host); err != nil {
				return errors.Join(err, listener.Close())
			}
		}
		listener = tls.NewListener(listener, &tls.Config{
			Certificates: []tls.Certificate{*s.cert},
			MinVersion:   tls.VersionTLS12,
			NextProtos:   []string{"http/1.1"},
		})
	}
	// No timeouts: each costs two system calls per request, and the clients are tests.
	s.entrances = append(s.entrances, &entrance{listener, &http.Server{
		Handler:  g,
		ErrorLog: log.New(&serverLog{s.options.Logger}, "", 0),
	}})
	return nil
}

func (s *Server) closeListeners() error {
	var errs []error
	for _, e := range s.entrances {
		errs = append(errs, e.listener.Close())
	}
	return errors.Join(errs...)
}

// Failed receives why the data cannot be kept or trusted any more, once, if that
// happens: a write that the disk refused, corrupt data that was read. From then on the
// emulator answers every request with 500 and has to be started anew.
func (s *Server) Failed() <-chan error { return s.store.Failed() }

// Close ends all connections, waits for running requests and closes the store.
// It may be called more than once.
func (s *Server) Close() error {
	s.closing.Do(func() {
		close(s.done)
		s.clients.close()
		var err error
		for _, e := range s.entrances {
			err = errors.Join(err, e.http.Close())
		}
		s.serving.Wait()
		s.inflight.Wait()
		if err := errors.Join(err, s.store.Close()); err != nil {
			s.closed = fmt.Errorf("cosmosemu: close: %w", err)
		}
	})
	return s.closed
}

// Endpoint is the account endpoint, such as "http://127.0.0.1:41234/".
func (s *Server) Endpoint() string {
	return s.scheme() + s.host + "/"
}

func (s *Server) scheme() string {
	if s.cert != nil {
		return "https://"
	}
	return "http://"
}

// Addr is the host:port clients use.
func (s *Server) Addr() string { return s.host }

// Key is the account key.
func (s *Server) Key() string { return s.options.Key }

// Now is the emulator's clock: Options.Now and what Advance has added.
func (s *Server) now() time.Time { return s.options.Now().Add(time.Duration(s.clock.Load())) }

// Advance moves the emulator's clock, and with it the time to live of documents.
func (s *Server) Advance(d time.Duration) { s.clock.Add(int64(d)) }

// serverLog passes net/http's complaints to slog. TLS handshakes that clients
// give up are among them.
type serverLog struct{ log *slog.Logger }

func (l *serverLog) Write(p []byte) (int, error) {
	l.log.Debug("http server", "message", string(p))
	return len(p), nil
}
