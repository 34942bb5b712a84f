package servicebus

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
	"feedbox/infrastructure/emulator/busemu"
)

// farConn is a connection whose every write takes a second, until it comes near.
type farConn struct {
	net.Conn
	near *atomic.Bool
}

func (c farConn) Write(p []byte) (int, error) {
	if !c.near.Load() {
		time.Sleep(time.Second) // virtual: how far away the broker is
	}
	return c.Conn.Write(p)
}

// TestADeadBrokerCostsOneTry: a broker that does not answer is tried once for all groups
// of a call, not once for each, or for each batch in flight.
func TestADeadBrokerCostsOneTry(t *testing.T) {
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
				t.Errorf("call %d took %v, %d connections were tried by then", n, took, dials)
			}
		}
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Connecting takes many round trips. What bounds one send must not end it, or a
// broker that is far away is never reached.
func TestConnectingMayTakeLongerThanASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &busemu.Options{})
		var near atomic.Bool
		client, err := NewClient(ClientConfig{
			ConnectionString: w.server.ConnectionString(),
			Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				conn, err := w.server.Dial(ctx)
				return farConn{conn, &near}, err
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
			t.Errorf("connected and sent in %v: this connection is not far away", took)
		}
		near.Store(true) // go-amqp closes under a lock, for which no virtual time passes
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
