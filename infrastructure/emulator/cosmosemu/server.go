package cosmosemu

import (
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
)

// Server is a running emulator. It is safe for concurrent use.
type Server struct {
	options Options
	host    string // host:port clients use
	key     []byte
	store   *store.Store
	auth    authenticator
	clock   atomic.Int64 // nanoseconds Advance has added

	listener net.Listener
	http     *http.Server
	served   chan struct{}  // closed when the listener has ended
	inflight sync.WaitGroup // requests
	cert     *certificate   // nil without TLS

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
	s := &Server{options: o, served: make(chan struct{})}
	s.key, _ = base64.StdEncoding.DecodeString(o.Key) // resolve has checked it
	s.auth.init(s.key)
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("cosmosemu: listen: %w", err)
	}
	seed := o.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	s.store, err = store.Open(store.Options{
		Dir: o.DataDir, FS: o.FS, Now: s.now, Logger: o.Logger, Random: rand.New(rand.NewPCG(seed, seed)),
	})
	if err != nil {
		return nil, fmt.Errorf("cosmosemu: %w", errors.Join(err, s.listener.Close()))
	}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(&serverLog{o.Logger}, "", 0),
	}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(s.listener) // ends with ErrServerClosed
	}()
	return s, nil
}

func (s *Server) listen() (err error) {
	o := &s.options
	switch {
	case o.Listener != nil:
		s.listener = o.Listener
	case o.Network != nil:
		if o.Host == "" {
			o.Host = fmt.Sprintf("cosmos-%d.emulator:8081", instances.Add(1))
		}
		s.listener, err = o.Network.Listen(o.Host)
	default:
		s.listener, err = net.Listen("tcp", o.Addr) //nolint:noctx // binding does not block
	}
	if err != nil {
		return err
	}
	s.host = o.Host
	if s.host == "" {
		s.host = s.listener.Addr().String()
	}
	if !o.TLS {
		return nil
	}
	if s.cert, err = newCertificate(o.Certificate, s.host); err != nil {
		return errors.Join(err, s.listener.Close())
	}
	s.listener = tls.NewListener(s.listener, &tls.Config{
		Certificates: []tls.Certificate{s.cert.tls},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	})
	return nil
}

// Close ends all connections, waits for running requests and closes the store.
// It may be called more than once.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.clients.close()
		err := s.http.Close()
		<-s.served
		s.inflight.Wait()
		if err := errors.Join(err, s.store.Close()); err != nil {
			s.closed = fmt.Errorf("cosmosemu: close: %w", err)
		}
	})
	return s.closed
}

// Endpoint is the account endpoint, such as "http://127.0.0.1:41234/".
func (s *Server) Endpoint() string {
	if s.cert != nil {
		return "https://" + s.host + "/"
	}
	return "http://" + s.host + "/"
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
