package busemu

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// adminServer serves the admin API (ATOM/XML over HTTP) and /health.
type adminServer struct {
	srv      *Server
	listener net.Listener
	http     *http.Server
}

const (
	adminBodyMax      = 1 << 20
	adminCloseTimeout = 2 * time.Second
)

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
	if s.o.AdminTLS != nil {
		l = tls.NewListener(l, s.o.AdminTLS)
	}
	a := &adminServer{srv: s, listener: l}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", a.health)
	mux.HandleFunc("GET /$counters/{path...}", a.counters)
	mux.HandleFunc("GET "+websocketPath, a.websocket)
	mux.HandleFunc("/", a.route)
	a.http = &http.Server{Handler: mux, ReadHeaderTimeout: handshakeTimeout, BaseContext: func(net.Listener) context.Context { return s.ctx }}
	s.admin = a
	s.wg.Go(func() {
		if err := a.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("admin API ended", "error", err)
		}
	})
	return nil
}

// AdminAddr is the address of the admin API; empty if there is none.
func (s *Server) AdminAddr() string {
	if s.admin == nil {
		return ""
	}
	return s.admin.listener.Addr().String()
}

// AdminURL is the base URL of the admin API; empty if there is none.
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
