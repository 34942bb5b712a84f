package busemu

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"
)

// AMQP over WebSockets, which the SDKs of every language offer for networks that let
// only HTTPS through (azure-core-amqp WebSocketsConnectionHandler; AMQP WebSocket
// binding, OASIS committee draft).
//
// Request: GET /$servicebus/websocket, subprotocol AMQPWSB10 (the SDKs) or amqp (the
// binding's name, which the Go SDK's own tests ask for).
//
// Served on the AMQP port, with and without TLS, and by the admin API, whose HTTPS
// port is what a client has that is told one host for both. The frames of AMQP are one
// stream: how it is cut into messages has no meaning.

const websocketPath = "/$servicebus/websocket"

var websocketProtocols = []string{"AMQPWSB10", "amqp"}

// acceptWebSocket upgrades a request and returns the stream of AMQP it carries.
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
	ws.SetReadLimit(-1) // frames are limited by what reads them
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

// startWebSocket answers the HTTP request at the start of a connection of the AMQP port.
func (c *conn) startWebSocket() error {
	br := bufio.NewReader(io.LimitReader(c.nc, maxUpgradeRequest))
	r, err := http.ReadRequest(br)
	if err != nil {
		return err
	}
	early, err := br.Peek(br.Buffered()) // what came with the request
	if err != nil {
		return err
	}
	whole := &prefixedConn{Conn: c.nc, prefix: early}
	nc, err := acceptWebSocket(&upgrade{nc: whole, header: http.Header{}}, r)
	if err == nil {
		c.nc = nc
	}
	return err
}

// maxUpgradeRequest bounds the request that asks for a WebSocket.
const maxUpgradeRequest = 64 << 10

// upgrade answers one HTTP request on a bare connection, and hands it over.
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
