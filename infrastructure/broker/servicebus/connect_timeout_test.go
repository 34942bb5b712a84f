package servicebus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/coder/websocket"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
	"feedbox/infrastructure/emulator/busemu"
)

// slowConn is a connection whose writes take a second until fast is set.
type slowConn struct {
	net.Conn
	fast *atomic.Bool
}

func (c slowConn) Write(p []byte) (int, error) {
	if !c.fast.Load() {
		time.Sleep(time.Second) // virtual time
	}
	return c.Conn.Write(p)
}

// A call makes one attempt to reach an unavailable broker, and not one per group or batch.
func TestUnavailableBrokerIsTriedOncePerCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &busemu.Options{})
		defer w.close(t)
		dials := 0
		client, err := NewClient(ClientConfig{
			ConnectionString: w.server.ConnectionString(),
			Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				dials++
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPublisher(client, "contacts", &PublisherOptions{limits: limits{inFlight: 8}})
		if err != nil {
			t.Fatal(err)
		}
		groups := make([]relay.Group, 26)
		for i := range groups {
			groups[i] = group(string('a'+rune(i)), 1)
		}
		for n := range 3 {
			began := time.Now()
			err := p.Publish(t.Context(), groups)
			failed, _ := errors.AsType[*relay.PublishError](err)
			if failed == nil || len(failed.Keys) != len(groups) || relay.ClassOf(err) != relay.Outage {
				t.Fatalf("error %v, want an outage of all keys", err)
			}
			if took := time.Since(began); took > wire.ConnectTimeout || dials != n+1 {
				t.Errorf("call %d took %v, after %d attempts to connect", n, took, dials)
			}
		}
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Connecting takes many round trips, so the timeout of a send must not apply to it.
func TestConnectMayTakeLongerThanASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &busemu.Options{})
		var fast atomic.Bool
		client, err := NewClient(ClientConfig{
			ConnectionString: w.server.ConnectionString(),
			Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				conn, err := w.server.Dial(ctx)
				return slowConn{conn, &fast}, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPublisher(client, "contacts", &PublisherOptions{limits: limits{sendTimeout: 3 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := p.Publish(t.Context(), []relay.Group{group("a", 1)}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 4*time.Second {
			t.Errorf("connected and sent in %v: the connection is too fast for this test", took)
		}
		fast.Store(true) // go-amqp closes under a lock, and synctest does not advance time then
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

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
