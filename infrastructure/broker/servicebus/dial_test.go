package servicebus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/coder/websocket"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/busemu"
)

// The client connects by TLS, by TCP to an emulator, or by a web socket, and uses the port of the host.
func TestClientConnectsByEveryTransport(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate, which is for 127.0.0.1 too
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	server := busemu.StartT(t, &busemu.Options{AdminAddr: "-", TLS: web.TLS, Topology: &busemu.Topology{Topics: []busemu.Topic{{Name: "contacts"}}}})
	secure := server.ConnectionString()
	for name, cfg := range map[string]ClientConfig{
		"TLS":   {ConnectionString: secure, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		"plain": {ConnectionString: secure + ";usedevelopmentemulator=TRUE"},
		"web socket": {ConnectionString: secure, Dial: func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
			ws, _, err := websocket.Dial(ctx, args.Host, &websocket.DialOptions{Subprotocols: []string{"amqp"}, HTTPClient: &http.Client{Transport: transport}})
			if err != nil {
				return nil, err
			}
			ws.SetReadLimit(-1)
			return websocket.NetConn(context.WithoutCancel(ctx), ws, websocket.MessageBinary), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server.Control(busemu.OpSend, busemu.Times(1, busemu.Fault{Outcome: busemu.Released}))
			client, p := connect(t, cfg)
			defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
			wantFailed(t, p.Publish(t.Context(), []relay.Group{group("a", 10)}), "a after 0: outage released")
			if err := p.Publish(t.Context(), []relay.Group{group("a", 10)}); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("unknown certificate", func(t *testing.T) {
		client, p := connect(t, ClientConfig{ConnectionString: secure})
		defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
		if err := p.Publish(t.Context(), []relay.Group{group("a", 10)}); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("error %v, want one of the certificate", err)
		}
	})
}

func connect(t *testing.T, cfg ClientConfig) (*Client, *Publisher) {
	t.Helper()
	client, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPublisher(client, "contacts", nil)
	if err != nil {
		t.Fatal(err)
	}
	return client, p
}
