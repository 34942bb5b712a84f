package cosmosemu

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/httpapi/hostguard"
	"feedbox/infrastructure/httpapi/limit"
)

// instances numbers the emulators of this process, because azcosmos shares its caches
// between clients of one host name.
var instances atomic.Int64

// maxStreams limits a connection of HTTP/2. It is the least that its RFC recommends.
const maxStreams = 100

// maxConnections limits the open connections of an address. Clients of tests open some hundreds.
const maxConnections = 4096

// takeTimeout limits the time in which a client takes no byte, in both versions of HTTP.
const takeTimeout = 30 * time.Second

// address is one address that the emulator listens on.
type address struct {
	listener net.Listener
	http     *http.Server
}

// gateway handles the requests to one address.
type gateway struct {
	srv    *Server
	kind   gatewayKind
	region int // in Options.Regions
}

func (g gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.srv.calls.begin() != nil {
		panic(http.ErrAbortHandler) // Close has ended the connection
	}
	defer g.srv.calls.Done()
	limit.Protect(r.Context()) // a call may be delayed for as long as a test wants
	if strings.HasPrefix(r.URL.Path, controlPath) {
		g.srv.serveControl(w, r)
		return
	}
	g.srv.dispatcher.serve(w, r, g.kind, g.region)
}

// listen opens the addresses of all regions and of the compute gateway.
func (s *Server) listen() error {
	o := &s.options
	main, err := s.mainListener()
	if err != nil {
		return err
	}
	s.hosts = []string{cmp.Or(o.Host, main.Addr().String())}
	kind := defaultGateway
	if o.RoutingGateway {
		kind = routingGateway
	}
	if err := s.addAddress(main, gateway{s, kind, 0}); err != nil {
		return err
	}
	if err := s.listenInRegions(kind); err != nil || o.ComputeAddr == "" {
		return err
	}
	compute, err := net.Listen("tcp", o.ComputeAddr) //nolint:noctx // binding does not block
	if err != nil {
		return errors.Join(err, s.closeListeners())
	}
	return s.addAddress(compute, gateway{s, computeGateway, 0})
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

// listenInRegions opens an address for each region but the first.
func (s *Server) listenInRegions(kind gatewayKind) error {
	for i := 1; i < len(s.options.Regions); i++ {
		listener, host, err := s.regionListener(i)
		if err != nil {
			return fmt.Errorf("region %s: %w", s.options.Regions[i], err)
		}
		s.hosts = append(s.hosts, host)
		if err := s.addAddress(listener, gateway{s, kind, i}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) regionListener(i int) (net.Listener, string, error) {
	if o := &s.options; o.Network != nil {
		host := fmt.Sprintf("region%d-%s", i, o.Host)
		listener, err := o.Network.Listen(host)
		return listener, host, err
	}
	name, _, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", "0")) //nolint:noctx // binding does not block
	if err != nil {
		return nil, "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return listener, net.JoinHostPort(name, port), err
}

// addAddress adds an address to serve, over TLS if Options.TLS is set.
func (s *Server) addAddress(listener net.Listener, g gateway) (err error) {
	o := &s.options
	guarded := hostguard.Handler(g, listener, append(slices.Clone(o.AllowedHosts), s.Addr(), o.Addr, o.ComputeAddr)...)
	var bounded *limit.Listener
	if _, reachable := listener.Addr().(*net.TCPAddr); reachable { // a network in memory is the test's own
		bounded = limit.Listen(listener, &limit.Options{Connections: maxConnections, Progress: takeTimeout, Buffer: -1, Logger: o.Logger})
		listener = bounded
	}
	if s.options.TLS {
		if s.cert = cmp.Or(s.cert, s.options.Certificate); s.cert == nil {
			if s.cert, err = newCertificate(s.Addr()); err != nil {
				return errors.Join(err, listener.Close())
			}
		}
		listener = tls.NewListener(listener, &tls.Config{
			Certificates: []tls.Certificate{*s.cert},
			MinVersion:   tls.VersionTLS12,
			NextProtos:   []string{"h2", "http/1.1"},
		})
	}
	// An unfinished head holds memory, so its size and time are limited. Calls have no timeout,
	// because faults may delay them for as long as a test wants. A connection of HTTP/2 is checked
	// with pings.
	server := &http.Server{
		Handler:           guarded,
		ErrorLog:          log.New(&serverLog{s.options.Logger}, "", 0),
		MaxHeaderBytes:    maxHead,
		ReadHeaderTimeout: headTimeout,
		Protocols:         &http.Protocols{},
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			SendPingTimeout:      30 * time.Second, PingTimeout: 15 * time.Second, WriteByteTimeout: takeTimeout,
		},
	}
	if bounded != nil {
		server.ConnState, server.ConnContext = bounded.ConnState, bounded.ConnContext
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true) // with prior knowledge, as the Rust SDK tries first
	s.addresses = append(s.addresses, &address{listener, server})
	return nil
}

func (s *Server) closeListeners() error {
	var errs []error
	for _, e := range s.addresses {
		errs = append(errs, e.listener.Close())
	}
	return errors.Join(errs...)
}

// serverLog passes the messages of net/http to slog. They are logged at debug level
// because aborted TLS handshakes are among them.
type serverLog struct{ log *slog.Logger }

func (l *serverLog) Write(p []byte) (int, error) {
	l.log.Debug("http server", "message", string(p))
	return len(p), nil
}
