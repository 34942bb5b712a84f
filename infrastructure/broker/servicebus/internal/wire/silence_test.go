package wire

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/emulator/busemu"
)

// silentCredential does not answer its second request.
type silentCredential struct{ requests atomic.Int32 }

func (c *silentCredential) GetToken(ctx context.Context, _ policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if c.requests.Add(1) == 2 {
		<-ctx.Done()
		return azcore.AccessToken{}, ctx.Err()
	}
	return azcore.AccessToken{Token: "eyJhbGciOiJub25lIn0.e30.", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// openBy opens a connection by dial.
func openBy(t *testing.T, credential azcore.TokenCredential, dial func(ctx context.Context) (net.Conn, error)) (*Conn, error) {
	t.Helper()
	namespace, err := NewNamespace(Config{Namespace: "contoso.servicebus.windows.net", Credential: credential, Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
		return dial(ctx)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return Open(t.Context(), namespace, slog.New(slog.DiscardHandler))
}

// Otherwise no token of the connection would be refreshed any more.
func TestSilentCredentialDoesNotStopTheRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := busemu.StartT(t, &busemu.Options{Addr: "-", AdminAddr: "-", Topology: &busemu.Topology{Queues: []busemu.Queue{{Name: "q"}}}})
		credential := &silentCredential{}
		c, err := openBy(t, credential, server.Dial)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Claim(t.Context(), "q"); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Hour)
		if n := credential.requests.Load(); n < 4 {
			t.Errorf("%d requests for tokens in two hours, want one each half hour", n)
		}
		c.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A peer that accepts connections and sends nothing.
func TestOpenEndsIfTheBrokerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		near, far := net.Pipe()
		go func() {
			for {
				if _, err := far.Read(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		}()
		if _, err := openBy(t, &silentCredential{}, func(context.Context) (net.Conn, error) { return near, nil }); err == nil || time.Since(began) > ConnectTimeout {
			t.Errorf("error %v after %v, want one within %v", err, time.Since(began), ConnectTimeout)
		}
		_ = far.Close()
	})
}
