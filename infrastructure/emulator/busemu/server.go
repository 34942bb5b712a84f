package busemu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/httpapi/limit"
)

// Server is a running emulator. Safe for concurrent use.
type Server struct {
	*namespace
	admin *adminServer       // nil if there is none
	conns map[*conn]struct{} // guarded by namespace.mu
}

// Start starts an emulator; nil options are the defaults. All listeners are bound when it
// returns.
func Start(o *Options) (*Server, error) {
	opts, err := o.resolve()
	if err != nil {
		return nil, fmt.Errorf("busemu: options: %w", err)
	}
	s := &Server{
		namespace: &namespace{
			o: opts, log: opts.Logger, keys: opts.Keys, containerID: newUUID().hex() + "_G1",
			started: opts.Now(), credits: credits{limit: opts.CreditsPerSecond},
			in: credits{limit: opts.MessagingUnits * unitBytes}, out: credits{limit: opts.MessagingUnits * unitBytes},
		},
		conns: make(map[*conn]struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // the server's own lifetime, ended by Close
	if err := s.start(); err != nil {
		return nil, fmt.Errorf("busemu: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

func (s *Server) start() error {
	var err error
	s.listener = s.o.Listener
	if s.listener == nil && s.o.Addr != noAddr {
		if s.listener, err = (&net.ListenConfig{}).Listen(s.ctx, "tcp", s.o.Addr); err != nil {
			return err
		}
	}
	if s.listener != nil {
		s.listener = s.bounded(s.listener)
	}
	s.broker, err = broker.Open(&broker.Options{
		Dir: s.o.DataDir, FS: s.o.FS, Premium: s.o.Premium, Partitions: s.o.Partitions,
		Now: s.o.Now, DecodeFields: decodeFields, ApplyChanges: applyChanges, Logger: s.log,
	})
	if err != nil {
		return err
	}
	if s.o.Topology != nil {
		if err := s.createTopology(s.ctx, s.o.Topology); err != nil {
			return err
		}
	}
	if err := s.startAdmin(); err != nil {
		return err
	}
	if s.listener != nil {
		s.wg.Go(func() { s.accept(s.listener) })
	}
	return nil
}

// maxConnections limits the open connections of a listener. Beyond it, a new one displaces one
// that has not finished its handshake.
const maxConnections = 4096

// bounded returns a listener with limits. It has no limit on writes, because a paused receiver is
// a fault that tests cause; the output that waits for it is bounded.
func (s *Server) bounded(l net.Listener) *limit.Listener {
	return limit.Listen(l, &limit.Options{Connections: maxConnections, Progress: -1, Buffer: -1, Logger: s.log})
}

func (s *Server) accept(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				s.log.Error("listener stopped accepting", "addr", l.Addr().String(), "error", err)
			}
			return
		}
		if !s.serve(nc) {
			_ = nc.Close()
			return
		}
	}
}

// serve starts a connection's goroutines. It returns false if the server is closed.
func (s *Server) serve(nc net.Conn) bool {
	c := &conn{
		ns: s.namespace, nc: nc, log: s.log.With("peer", nc.RemoteAddr().String()),
		chunks: make(chan chunk), recycle: make(chan []byte, 1),
		toWrite: make(chan []byte, 1), written: make(chan []byte, 1),
		stop: make(chan struct{}), mailbox: newMailbox(),
		sessions: make(map[uint16]*session), free: make([]byte, 0, readBufferMin),
		management: func(path string) requestNode { return &managementNode{ns: s.namespace, path: path} },
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	s.wg.Go(func() {
		c.run()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	})
	return true
}

// Dial connects in memory, without a listener. The client's end is a net.Conn
// for go-amqp's NewConn or the SDK's ClientOptions.NewWebSocketConn.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	if !s.serve(server) {
		return nil, errors.Join(client.Close(), server.Close(), net.ErrClosed)
	}
	return client, nil
}

// Addr returns the address of the AMQP listener; empty if there is none.
func (s *Server) Addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// host returns the host:port for clients.
func (s *Server) host() string {
	return cmp.Or(s.o.Host, s.Addr(), "busemu:5672")
}

// ConnectionString returns the connection string for the first key. Without TLS it has
// UseDevelopmentEmulator=true, on which the SDKs dial plain TCP.
func (s *Server) ConnectionString() string { return s.connectionString(s.keys[0]) }

// ConnectionStringFor returns the connection string for the key with this name; empty if there
// is none.
func (s *Server) ConnectionStringFor(keyName string) string {
	key, ok := s.keys.find(keyName)
	if !ok {
		return ""
	}
	return s.connectionString(key)
}

func (s *Server) connectionString(key SASKey) string {
	cs := "Endpoint=sb://" + s.host() + ";SharedAccessKeyName=" + key.Name + ";SharedAccessKey=" + key.Key
	if s.o.TLS == nil {
		cs += ";UseDevelopmentEmulator=true"
	}
	return cs
}

// Failed receives the cause once, when the data can no longer be stored or trusted: a write
// that failed, or corrupt data. After that the emulator refuses everything and must be
// restarted. In memory nothing is ever received.
func (s *Server) Failed() <-chan error { return s.broker.Failed() }

// Close closes all connections, waits for their goroutines and closes the broker. Accepted
// messages are durable when it returns. It is idempotent.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for c := range s.conns {
		c.shutdown()
	}
	s.mu.Unlock()
	s.cancel()
	var errs []error
	if s.listener != nil {
		errs = append(errs, s.listener.Close())
	}
	if s.admin != nil {
		errs = append(errs, s.admin.close())
	}
	s.wg.Wait()
	if s.broker != nil {
		errs = append(errs, s.broker.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("busemu: close: %w", err)
	}
	return nil
}
