package wire

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/emulator/busemu"
)

// inConn runs a test in a synctest bubble with a connection to an emulator.
func inConn(t *testing.T, o busemu.Options, test func(t *testing.T, c *Conn)) {
	inServer(t, o, func(t *testing.T, c *Conn, _ *busemu.Server) { test(t, c) })
}

// inServer is inConn with the emulator.
func inServer(t *testing.T, o busemu.Options, test func(t *testing.T, c *Conn, server *busemu.Server)) {
	synctest.Test(t, func(t *testing.T) {
		o.Addr, o.AdminAddr = "-", "-"
		o.Topology = &busemu.Topology{Queues: []busemu.Queue{{Name: "q"}}}
		server := busemu.StartT(t, &o)
		namespace, err := NewNamespace(Config{
			ConnectionString: server.ConnectionString(),
			Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				return server.Dial(ctx)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := Open(t.Context(), namespace, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { // also after a failure: the bubble waits for their goroutines
			c.Close()
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, c, server)
	})
}

// A signature of the connection string has no known end, and only tokens with one are put again.
func TestSignatureIsNotRefreshed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Conn{expires: map[string]time.Time{"signed": {}}}
		if pause, paths := c.nextRefresh(); pause != maxRefresh || len(paths) != 0 {
			t.Errorf("refresh of %v in %s, want none in %s", paths, pause, maxRefresh)
		}
		c.expires["q"] = time.Now().Add(time.Hour)
		if pause, paths := c.nextRefresh(); pause != 30*time.Minute || len(paths) != 1 || paths[0] != "q" {
			t.Errorf("refresh of %v in %s, want that of q in 30m", paths, pause)
		}
	})
}

// The service detaches the idle links of a node.
func TestRequestReplacesEndedLinks(t *testing.T) {
	inConn(t, busemu.Options{}, func(t *testing.T, c *Conn) {
		for range 3 {
			if err := c.Claim(t.Context(), "q"); err != nil {
				t.Fatal(err)
			}
			node := c.node(claims).Current()
			if err := node.session.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if c.Ended() {
			t.Error("the connection has ended")
		}
	})
}

// After a refused link the next one attaches in the same AMQP session.
func TestRefusedLinkReleasesItsPlace(t *testing.T) {
	inConn(t, busemu.Options{}, func(t *testing.T, c *Conn) {
		for _, path := range []string{"q", "nowhere"} {
			if err := c.Claim(t.Context(), path); err != nil && path == "q" {
				t.Fatal(err)
			}
		}
		for range 300 { // more than there are places
			_, err := c.Attach(t.Context(), func(s *amqp.Session) error {
				_, err := s.NewSender(t.Context(), "nowhere", nil)
				return err
			})
			if err == nil {
				t.Fatal("attached to nowhere")
			}
		}
		for range 3 {
			var sender *amqp.Sender
			leave, err := c.Attach(t.Context(), func(s *amqp.Session) (err error) {
				sender, err = s.NewSender(t.Context(), "q", nil)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := sender.Close(t.Context()); err != nil {
				t.Error(err)
			}
			leave()
		}
		if n := len(c.sessions); n != 1 {
			t.Errorf("%d AMQP sessions, want 1", n)
		}
	})
}

func TestRefusedTokenReturnsItsStatus(t *testing.T) {
	inConn(t, busemu.Options{}, func(t *testing.T, c *Conn) {
		c.namespace.key = "wrong"
		err := c.Claim(t.Context(), "q")
		if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Status != 401 {
			t.Errorf("error %v, want a refusal with status 401", err)
		}
	})
}

func TestEndedLinkReleasesItsPlace(t *testing.T) {
	inConn(t, busemu.Options{}, func(t *testing.T, c *Conn) {
		if err := c.Claim(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		for range linksPerSession + 1 {
			var sender *amqp.Sender
			leave, err := c.Attach(t.Context(), func(s *amqp.Session) (err error) {
				sender, err = s.NewSender(t.Context(), "q", nil)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := sender.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			leave()
		}
		if n := len(c.sessions); n != 1 {
			t.Errorf("%d AMQP sessions, want 1", n)
		}
	})
}

// A connection has at most 5,000 AMQP sessions.
func TestRefusedNodeClosesItsSession(t *testing.T) {
	inConn(t, busemu.Options{}, func(t *testing.T, c *Conn) {
		if err := c.Claim(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		for range 5000 {
			if _, err := c.openNode(t.Context(), claims); err == nil {
				t.Fatal("a connection has two pairs of links to one node of claims")
			}
		}
		if _, err := c.openNode(t.Context(), "q"+ManagementSuffix); err != nil {
			t.Error(err)
		}
	})
}

// A silent node would otherwise be used until the connection ends, and no token would be refreshed.
func TestNodeThatDoesNotRespondIsReplaced(t *testing.T) {
	inServer(t, busemu.Options{}, func(t *testing.T, c *Conn, server *busemu.Server) {
		if err := c.Claim(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		silent := c.node(claims).Current()
		server.Control(busemu.OpPutToken, busemu.Times(1, busemu.Fault{Loss: busemu.Drop}))
		began := time.Now()
		if err := c.Claim(t.Context(), "q"); !errors.Is(err, ErrNoResponse) {
			t.Errorf("error %v, want ErrNoResponse", err)
		}
		if took := time.Since(began); took > requestTimeout+nodeCloseTimeout {
			t.Errorf("took %v", took)
		}
		if err := c.Claim(t.Context(), "q"); err != nil {
			t.Error(err)
		}
		if c.node(claims).Current() == silent {
			t.Error("the silent node is still used")
		}
	})
}

// A caller that waits for a shorter time than a request may take does not end the node of others.
func TestCanceledRequestKeepsTheNode(t *testing.T) {
	inServer(t, busemu.Options{}, func(t *testing.T, c *Conn, server *busemu.Server) {
		if err := c.Claim(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		node := c.node(claims).Current()
		server.Control(busemu.OpPutToken, busemu.Times(1, busemu.Fault{Loss: busemu.Drop}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Claim(ctx, "q"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of the context", err)
		}
		if c.node(claims).Current() != node {
			t.Error("the node was replaced")
		}
	})
}

func TestAddressHasTheDefaultPort(t *testing.T) {
	const key = ";SharedAccessKeyName=a;SharedAccessKey=b"
	for _, tt := range []struct{ connection, want string }{
		{"Endpoint=sb://x" + key, "x:5671"},
		{"Endpoint=sb://x:7/" + key, "x:7"},
		{"Endpoint=sb://[::1]:7/" + key, "[::1]:7"},
		{"Endpoint=sb://localhost" + key + ";UseDevelopmentEmulator=true;", "plain localhost:5672"},
		{"usedevelopmentemulator=1;Endpoint=sb://localhost:99" + key, "plain localhost:99"},
		{"UseDevelopmentEmulator=false;Endpoint=sb://localhost" + key, "localhost:5671"},
		{"Endpoint=sb://x;SharedAccessKeyName=UseDevelopmentEmulator=true;SharedAccessKey=b", "x:5671"},
	} {
		n, err := NewNamespace(Config{ConnectionString: tt.connection})
		if err != nil {
			t.Errorf("%s: %v", tt.connection, err)
			continue
		}
		got := n.address()
		if n.emulator {
			got = "plain " + got
		}
		if got != tt.want {
			t.Errorf("%s: %s; want %s", tt.connection, got, tt.want)
		}
	}
}
