package busemu

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/admin"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/httpapi/hostguard"
	"feedbox/infrastructure/httpapi/limit"
)

// adminServer serves the admin API, /health, /$counters and AMQP over WebSockets on one
// HTTP port.
type adminServer struct {
	srv      *Server
	listener net.Listener
	http     *http.Server
}

const adminCloseTimeout = 2 * time.Second

func (s *Server) startAdmin() error {
	if s.o.AdminListener == nil && s.o.AdminAddr == noAddr {
		return nil
	}
	l := s.o.AdminListener
	if l == nil {
		var err error
		if l, err = (&net.ListenConfig{}).Listen(s.ctx, "tcp", s.o.AdminAddr); err != nil {
			return err
		}
	}
	bounded := s.bounded(l)
	if l = bounded; s.o.AdminTLS != nil {
		l = tls.NewListener(l, s.o.AdminTLS)
	}
	a := &adminServer{srv: s, listener: l}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", a.health)
	mux.HandleFunc("GET /$counters/{path...}", a.counters)
	mux.HandleFunc("GET "+websocketPath, a.websocket)
	mux.Handle("/", s.adminAPI())
	protected := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit.Protect(r.Context())
		mux.ServeHTTP(w, r)
	})
	a.http = &http.Server{
		Handler: hostguard.Handler(protected, l, s.allowedHosts()...), ReadHeaderTimeout: handshakeTimeout, MaxHeaderBytes: maxUpgradeRequest,
		BaseContext: func(net.Listener) context.Context { return s.ctx }, ConnState: bounded.ConnState, ConnContext: bounded.ConnContext,
	}
	s.admin = a
	s.wg.Go(func() {
		if err := a.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("admin API stopped serving", "error", err)
		}
	})
	return nil
}

func (s *Server) adminAPI() http.Handler {
	return &admin.Handler{
		Broker: s.broker, Logger: s.log, Host: s.host(), Premium: s.o.Premium, Started: s.started, Hidden: healthQueue,
		Authorize: s.mayManage, Updated: s.detachSoon,
		Admit: func() *broker.Error {
			if _, ok := s.credits.take(managementCredits); !ok {
				return throttled()
			}
			return nil
		},
	}
}

// mayManage reports whether a token, a shared access signature or a bearer token, grants
// Manage on a path of the admin API.
func (s *Server) mayManage(header, path string) (bool, error) {
	read := s.keys.verify
	if bearer, ok := strings.CutPrefix(header, "Bearer "); ok {
		header, read = bearer, readJWT
	}
	token, err := read(header, time.Now())
	if err != nil {
		return false, err
	}
	return token.covers(audiencePath(path)) && token.rights&RightManage != 0, nil
}

// AdminAddr returns the address of the admin API; empty if there is none.
func (s *Server) AdminAddr() string {
	if s.admin == nil {
		return ""
	}
	return s.admin.listener.Addr().String()
}

// AdminURL returns the base URL of the admin API; empty if there is none.
func (s *Server) AdminURL() string {
	switch {
	case s.admin == nil:
		return ""
	case s.o.AdminTLS != nil:
		return "https://" + s.AdminAddr()
	default:
		return "http://" + s.AdminAddr()
	}
}

func (a *adminServer) close() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.srv.ctx), adminCloseTimeout)
	defer cancel()
	if err := a.http.Shutdown(ctx); err != nil {
		return a.http.Close()
	}
	return nil
}

// websocket serves AMQP on a connection of the admin API.
func (a *adminServer) websocket(w http.ResponseWriter, r *http.Request) {
	nc, err := acceptWebSocket(w, r)
	if err != nil {
		a.srv.log.DebugContext(r.Context(), "WebSocket refused", "peer", r.RemoteAddr, "error", err)
		return
	}
	if !a.srv.serve(nc) {
		_ = nc.Close()
	}
}
