package servicebus

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/busemu"
)

// farConn is a connection whose every write takes a second.
type farConn struct{ net.Conn }

func (c farConn) Write(p []byte) (int, error) {
	time.Sleep(time.Second) // virtual: how far away the broker is
	return c.Conn.Write(p)
}

// Connecting takes many round trips. What bounds one send must not end it, or a
// broker that is far away is never reached.
func TestConnectingMayTakeLongerThanASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &busemu.Options{})
		client, err := NewClient(ClientConfig{
			ConnectionString: w.server.ConnectionString(),
			Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				conn, err := w.server.Dial(ctx)
				return farConn{conn}, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPublisher(client, "contacts", &PublisherOptions{SendTimeout: 3 * time.Second})
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
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
