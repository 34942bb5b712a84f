package cosmosemu

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// Server is a running emulator. It is safe for concurrent use.
type Server struct {
	account
	dispatcher dispatcher

	addresses []*address
	serving   sync.WaitGroup // addresses
	calls     calls

	clients clients
	closing sync.Once
	closed  error
}

// Start starts an emulator, which accepts connections when Start returns. With a free
// port the endpoint is not known earlier, so create clients afterwards.
func Start(options *Options) (*Server, error) {
	o, err := options.resolve()
	if err != nil {
		return nil, fmt.Errorf("cosmosemu: options: %w", err)
	}
	s := &Server{}
	s.options = o
	s.regions.init(len(o.Regions))
	s.readRegions = []string{strconv.Itoa(len(o.Regions) - 1)}
	s.started = []string{o.Now().UTC().Format(http.TimeFormat)}
	s.key, _ = base64.StdEncoding.DecodeString(o.Key) // resolve has checked it
	s.dispatcher.init(&s.account)
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("cosmosemu: listen: %w", err)
	}
	seed := o.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	s.store, err = store.Open(store.Options{
		Dir: o.DataDir, FS: o.FS, Now: s.now, Logger: o.Logger, Past: o.StaleReads, Undo: o.KeepWrites, Random: rand.New(rand.NewPCG(seed, seed)),
	})
	if err != nil {
		return nil, fmt.Errorf("cosmosemu: %w", errors.Join(err, s.closeListeners()))
	}
	s.lags.random = rand.New(rand.NewPCG(seed, seed+1))
	for _, e := range s.addresses {
		s.serving.Go(func() { _ = e.http.Serve(e.listener) }) // ends with ErrServerClosed
	}
	return s, nil
}

// Failed receives one error if the data can no longer be kept or trusted: the disk
// refused a write, or a read found corrupt data. From then on the emulator answers every
// request with 500 and must be restarted.
func (s *Server) Failed() <-chan error { return s.store.Failed() }

// Close ends all connections, waits for running requests and closes the store.
// It may be called more than once.
func (s *Server) Close() error {
	s.closing.Do(func() {
		close(s.dispatcher.done)
		s.clients.close()
		var err error
		for _, e := range s.addresses {
			err = errors.Join(err, e.http.Close())
		}
		s.serving.Wait()
		s.calls.end()
		if err := errors.Join(err, s.store.Close()); err != nil {
			s.closed = fmt.Errorf("cosmosemu: close: %w", err)
		}
	})
	return s.closed
}

// ErrClosed reports a call of a method that needs the data, after Close.
var ErrClosed = errors.New("the emulator is closed")

// calls are the requests and the calls of methods in progress.
type calls struct {
	sync.WaitGroup
	mu    sync.Mutex // guards ended
	ended bool
}

// begin keeps the store open until Done is called. Error: ErrClosed.
func (c *calls) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return ErrClosed
	}
	c.Add(1)
	return nil
}

// end waits for all calls. No other one begins.
func (c *calls) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.Wait()
}

// Endpoint is the account endpoint, such as "http://127.0.0.1:41234/".
func (s *Server) Endpoint() string { return s.scheme() + s.Addr() + "/" }

// RegionEndpoint is the endpoint of one of Options.Regions, "" for another name.
func (s *Server) RegionEndpoint(name string) string {
	i := slices.Index(s.options.Regions, name)
	if i < 0 {
		return ""
	}
	return s.scheme() + s.hosts[i] + "/"
}

// Addr is the host:port that clients use.
func (s *Server) Addr() string { return s.hosts[0] }

// Key is the account key.
func (s *Server) Key() string { return s.options.Key }

// Advance moves the emulator's clock, and with it the time to live of documents.
func (s *Server) Advance(d time.Duration) { s.clock.Add(int64(d)) }

// Control calls hook for every call of an operation, or for all calls with OpAny. Hooks
// are asked in the order they were added, and the first that returns a fault decides.
// remove removes the hook.
func (s *Server) Control(op Operation, hook Hook) (remove func()) {
	return s.dispatcher.hooks.Add(When(Call{Operation: op}, hook))
}

// TB is the part of testing.TB that StartT needs. It is declared here so that this package
// does not link the testing package.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// StartT starts an emulator for one test and closes it when the test ends. It accepts at
// most one Options.
func StartT(tb TB, options ...*Options) *Server {
	tb.Helper()
	var o *Options
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		tb.Fatalf("cosmosemu: StartT takes one Options, not %d", len(options))
		return nil
	}
	srv, err := Start(o)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() {
		if err := srv.Close(); err != nil {
			tb.Fatalf("%v", err)
		}
	})
	return srv
}
