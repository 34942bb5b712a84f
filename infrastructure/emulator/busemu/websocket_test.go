package busemu

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/coder/websocket"
)

// TestWebSockets: the SDK sends and receives over WebSockets, on the AMQP port, by TLS
// too, and on the port of the admin API.
func TestWebSockets(t *testing.T) {
	t.Parallel()
	certificate, roots := testCertificate(t)
	o := queues("q")
	o.TLS, o.AdminTLS = certificate, certificate
	srv := startT(t, o)
	plain := startT(t, queues("q"))
	for name, c := range map[string]struct {
		srv *Server
		url string
	}{
		"amqp port":       {plain, "ws://" + plain.Addr()},
		"amqp port, TLS":  {srv, "wss://" + srv.Addr()},
		"admin port":      {plain, "ws://" + plain.AdminAddr()},
		"admin port, TLS": {srv, "wss://" + srv.AdminAddr()},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var dialled string
			client := must(azservicebus.NewClientFromConnectionString(c.srv.ConnectionString(), &azservicebus.ClientOptions{
				NewWebSocketConn: func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
					dialled = args.Host
					ws, _, err := websocket.Dial(ctx, c.url+websocketPath, &websocket.DialOptions{
						Subprotocols: []string{"AMQPWSB10"},
						HTTPClient:   &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
					})
					if err != nil {
						return nil, err
					}
					ws.SetReadLimit(-1)
					return websocket.NetConn(context.WithoutCancel(ctx), ws, websocket.MessageBinary), nil
				},
			}))(t)
			defer func() { check(t, client.Close(context.WithoutCancel(ctx))) }()
			check(t, must(client.NewSender("q", nil))(t).SendMessage(ctx, &azservicebus.Message{Body: make([]byte, 100_000)}, nil))
			r := must(client.NewReceiverForQueue("q", nil))(t)
			got := must(r.ReceiveMessages(ctx, 1, nil))(t)
			if len(got[0].Body) != 100_000 {
				t.Errorf("%d bytes came", len(got[0].Body))
			}
			check(t, r.CompleteMessage(ctx, got[0], nil))
			if !strings.Contains(dialled, websocketPath) {
				t.Errorf("the SDK asks for %s", dialled)
			}
		})
	}
}

// TestInvalidWebSocketRequestIsRefused: any other HTTP request to the AMQP port gets an error
// response.
func TestInvalidWebSocketRequestIsRefused(t *testing.T) {
	t.Parallel()
	srv := startT(t, nil)
	for request, want := range map[string]int{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                           http.StatusNotFound,
		"GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\n\r\n":                                      http.StatusBadRequest,
		"GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\nSec-WebSocket-Protocol: AMQPWSB10\r\n\r\n": http.StatusUpgradeRequired,
		"GET " + strings.Repeat("/", 100_000) + " HTTP/1.1\r\nHost: x\r\n":                                    0,
		"GO":   0,
		"GET ": 0,
	} {
		nc := must(net.Dial("tcp", srv.Addr()))(t)
		_ = nc.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(nc, request)
		_ = nc.(*net.TCPConn).CloseWrite()
		resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
		switch {
		case want == 0 && err == nil:
			t.Errorf("%.30q was answered with %s", request, resp.Status)
		case want != 0 && (err != nil || resp.StatusCode != want):
			t.Errorf("%.30q: %v, %v; want %d", request, resp, err, want)
		}
		_ = nc.Close()
	}
	if _, _, err := websocket.Dial(t.Context(), "ws://"+srv.Addr()+websocketPath, &websocket.DialOptions{Subprotocols: []string{"mqtt"}}); err == nil {
		t.Error("a WebSocket of another subprotocol was accepted")
	}
}

// TestLoopbackListenerRefusesForeignHosts: a web page whose name was pointed to this machine gets
// no WebSocket, on either port, and no answer of the admin API.
func TestLoopbackListenerRefusesForeignHosts(t *testing.T) {
	t.Parallel()
	srv := startT(t, &Options{AllowedHosts: []string{"box.test"}})
	public := startT(t, &Options{Addr: "0.0.0.0:0", AdminAddr: "0.0.0.0:0"})
	for _, c := range []struct {
		srv  *Server
		host string
		want int
	}{
		{srv, "evil.example", http.StatusMisdirectedRequest},
		{srv, "localhost", http.StatusSwitchingProtocols},
		{srv, "contoso.localhost:5672", http.StatusSwitchingProtocols},
		{srv, "box.test", http.StatusSwitchingProtocols},
		{public, "evil.example", http.StatusSwitchingProtocols},
	} {
		for _, addr := range []string{c.srv.Addr(), c.srv.AdminAddr()} {
			_, port, _ := net.SplitHostPort(addr)
			ws, reply, err := websocket.Dial(t.Context(), "ws://127.0.0.1:"+port+websocketPath, &websocket.DialOptions{
				Host: c.host, Subprotocols: websocketProtocols, HTTPHeader: http.Header{"Origin": {"http://" + c.host}},
			})
			if reply == nil || reply.StatusCode != c.want {
				t.Errorf("%s answered %v to the host %s, want %d (%v)", addr, reply, c.host, c.want, err)
			}
			if ws != nil {
				_ = ws.CloseNow()
			}
		}
		r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, c.srv.AdminURL()+"/health", nil))(t)
		r.Host = c.host
		reply := must(http.DefaultClient.Do(r))(t)
		_ = reply.Body.Close()
		if refused := reply.StatusCode == http.StatusMisdirectedRequest; refused != (c.want == http.StatusMisdirectedRequest) {
			t.Errorf("/health answered %d to the host %s", reply.StatusCode, c.host)
		}
	}
}

// TestHeadOfAnAdminRequestIsLimited: a head of 900 KB is refused, because it would hold memory.
func TestHeadOfAnAdminRequestIsLimited(t *testing.T) {
	t.Parallel()
	nc := must(net.Dial("tcp", startT(t, nil).AdminAddr()))(t)
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(time.Minute))
	go func() {
		_, _ = io.WriteString(nc, "GET /health HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 900<<10))
	}()
	if resp := must(http.ReadResponse(bufio.NewReader(nc), nil))(t); resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("answered %s", resp.Status)
	}
}

// FuzzWebSocketRequest: bytes that begin like HTTP never make the AMQP port panic or hang.
func FuzzWebSocketRequest(f *testing.F) {
	srv, err := Start(&Options{AdminAddr: "-", Addr: "-"})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = srv.Close() })
	f.Add([]byte("ET /$servicebus/websocket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: AMQPWSB10\r\n\r\n\x82\x88\x01\x02\x03\x04AMQP"))
	f.Add([]byte("ET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		nc, err := srv.Dial(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(io.Discard, nc)
		}()
		_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = nc.Write(append([]byte{httpGet}, b...))
		_ = nc.Close()
		<-read
	})
}

// testCertificate returns a certificate for the loopback address and a pool that trusts it.
func testCertificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	c := must(NewCertificate())(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.PEM)
	return c.Config(), roots
}
