// Package pipenet is an in-memory network: named listeners and a dialer that connects to them
// with net.Pipe.
//
// Both emulators can listen in it and both Azure SDKs can dial it. So a whole system (clients,
// service, emulators) runs in one testing/synctest bubble. This needs pipes because blocking on
// a pipe is durable blocking there, but blocking on a real socket is not.
//
// A Network is safe for concurrent use. Only Serve starts goroutines.
package pipenet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// ErrRefused is wrapped by the error of DialContext if there is no listener at the address.
var ErrRefused = errors.New("connection refused")

// Network holds the listeners of one simulated network. The zero value is not usable; call New.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener // by address
}

// New returns an empty network.
func New() *Network {
	return &Network{listeners: make(map[string]*listener)}
}

// Listen binds addr, which may be any host:port text. It fails if addr is already bound. Closing
// the listener frees it.
func (n *Network) Listen(addr string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("pipenet: listen %s: %w", addr, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, taken := n.listeners[addr]; taken {
		return nil, fmt.Errorf("pipenet: listen %s: address already in use", addr)
	}
	l := &listener{network: n, addr: address(addr), accept: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// DialContext connects to the listener at addr. It blocks until the connection is accepted, the
// listener is closed or ctx ends. It can be used as net/http.Transport.DialContext.
func (n *Network) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	l, ok := n.listeners[addr]
	n.mu.Unlock()
	if !ok {
		return nil, dialError(addr, ErrRefused)
	}
	client, server := net.Pipe()
	select {
	case l.accept <- &pipeEnd{Conn: server, local: l.addr, remote: "pipe"}:
		return &pipeEnd{Conn: client, local: "pipe", remote: l.addr}, nil
	case <-l.closed:
		return nil, dialError(addr, ErrRefused)
	case <-ctx.Done():
		return nil, dialError(addr, ctx.Err())
	}
}

// Serve serves HTTP at addr of a new network until stop is called, which also waits for the running handlers.
// Clients need the transport.
func Serve(addr string, handler http.Handler) (transport *http.Transport, stop func(), err error) {
	network := New()
	l, err := network.Listen(addr)
	if err != nil {
		return nil, nil, err
	}
	var serving sync.WaitGroup
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		handler.ServeHTTP(w, r)
	}), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	serving.Go(func() { _ = server.Serve(l) })
	transport = &http.Transport{DialContext: network.DialContext, MaxIdleConnsPerHost: 100}
	return transport, func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		serving.Wait()
	}, nil
}

func dialError(addr string, err error) error {
	return &net.OpError{Op: "dial", Net: "pipe", Addr: address(addr), Err: err}
}

type listener struct {
	network *Network
	addr    address
	accept  chan net.Conn // never closed, because closed ends both sides
	closed  chan struct{} // closed by Close
	once    sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "pipe", Addr: l.addr, Err: net.ErrClosed}
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.listeners, string(l.addr))
		l.network.mu.Unlock()
		close(l.closed)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

// pipeEnd is one end of a pipe with an address of the network.
type pipeEnd struct {
	net.Conn
	local, remote address
}

func (c *pipeEnd) LocalAddr() net.Addr  { return c.local }
func (c *pipeEnd) RemoteAddr() net.Addr { return c.remote }

type address string

func (address) Network() string  { return "pipe" }
func (a address) String() string { return string(a) }
