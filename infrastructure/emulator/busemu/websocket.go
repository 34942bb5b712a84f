package busemu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"feedbox/infrastructure/httpapi/hostguard"
)

// AMQP over WebSockets, for networks that let only HTTPS through.
//
//	Request:  GET /$servicebus/websocket, subprotocol AMQPWSB10 (the SDKs) or amqp (the
//	          binding's name, requested by the Go SDK's own tests).
//
// It is served on the AMQP port, with and without TLS, and by the admin API, because some
// clients know one host and its HTTPS port for both. AMQP is one stream; its division into
// WebSocket messages has no meaning. Other paths get 404, other subprotocols 400.
//
// Source: azure-core-amqp WebSocketsConnectionHandler; AMQP WebSocket binding, OASIS committee
// draft.

const websocketPath = "/$servicebus/websocket"

var websocketProtocols = []string{"AMQPWSB10", "amqp"}

// acceptWebSocket upgrades a request and returns its AMQP stream.
func acceptWebSocket(w http.ResponseWriter, r *http.Request) (net.Conn, error) {
	if r.Method != http.MethodGet || !strings.EqualFold(strings.TrimSuffix(r.URL.Path, "/"), websocketPath) {
		http.Error(w, "AMQP over WebSockets is served at "+websocketPath, http.StatusNotFound)
		return nil, fmt.Errorf("%s %s is not %s", r.Method, r.URL.Path, websocketPath)
	}
	if !asksForAMQP(r) {
		http.Error(w, "ask for one of the subprotocols "+strings.Join(websocketProtocols, ", "), http.StatusBadRequest)
		return nil, fmt.Errorf("subprotocol %q", r.Header.Get("Sec-WebSocket-Protocol"))
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: websocketProtocols, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1) // frameReader limits frames
	return websocket.NetConn(context.WithoutCancel(r.Context()), ws, websocket.MessageBinary), nil
}

func asksForAMQP(r *http.Request) bool {
	for _, list := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(list, ",") {
			if slices.Contains(websocketProtocols, strings.TrimSpace(name)) {
				return true
			}
		}
	}
	return false
}

// startWebSocket answers the HTTP request at the start of a connection to the AMQP port.
func (c *conn) startWebSocket() error {
	br := bufio.NewReader(io.LimitReader(c.nc, maxUpgradeRequest))
	r, err := http.ReadRequest(br)
	if err != nil {
		return err
	}
	early, err := br.Peek(br.Buffered()) // bytes received with the request
	if err != nil {
		return err
	}
	whole := &prefixedConn{Conn: c.nc, prefix: early}
	err = errors.New("the host " + r.Host + " is not served")
	hostguard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var nc net.Conn
		if nc, err = acceptWebSocket(w, r); err == nil {
			c.nc = nc
		}
	}), c.ns.listener, c.ns.allowedHosts()...).ServeHTTP(&upgrade{nc: whole, header: http.Header{}}, r)
	return err
}

// maxUpgradeRequest limits the request for a WebSocket, and the head of any request to the admin API.
const maxUpgradeRequest = 64 << 10

// upgrade answers one HTTP request on a bare connection, which can then be hijacked.
type upgrade struct {
	nc     net.Conn
	header http.Header
	begun  bool
}

func (u *upgrade) Header() http.Header { return u.header }

func (u *upgrade) WriteHeader(status int) {
	if u.begun {
		return
	}
	u.begun = true
	if status != http.StatusSwitchingProtocols {
		u.header.Set("Connection", "close")
	}
	_, _ = fmt.Fprintf(u.nc, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = u.header.Write(u.nc)
	_, _ = io.WriteString(u.nc, "\r\n")
}

func (u *upgrade) Write(b []byte) (int, error) {
	u.WriteHeader(http.StatusOK)
	return u.nc.Write(b)
}

// Hijack implements [http.Hijacker].
func (u *upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return u.nc, bufio.NewReadWriter(bufio.NewReader(u.nc), bufio.NewWriter(u.nc)), nil
}
