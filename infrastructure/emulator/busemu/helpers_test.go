package busemu

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startT starts an emulator that logs to the test.
func startT(t *testing.T, o *Options) *Server {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	if o.Logger == nil && testing.Verbose() {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return StartT(t, o)
}

// clientT is an SDK client that is closed before the server and whose connection
// watches the broker.
func clientT(t *testing.T, s *Server) *azservicebus.Client {
	t.Helper()
	c, err := azservicebus.NewClientFromConnectionString(s.ConnectionString(), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			nc, err := s.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return checkConn(t, nc), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// allAtOnce waits for the full number of messages. Between two calls the client releases
// arriving messages one by one, and the next call may start after such a message
// (azservicebus, receiver.go, newReleaserFunc).
var allAtOnce = &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: time.Minute}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ptr[T any](v T) *T { return &v }

// message is a message of a session whose body and id are its number.
func message(session string, n int) *azservicebus.Message {
	id := fmt.Sprintf("%s-%d", session, n)
	return &azservicebus.Message{Body: []byte(id), MessageID: &id, SessionID: &session, Subject: ptr("Created"), ContentType: ptr("application/json")}
}

func sendBatch(ctx context.Context, t *testing.T, s *azservicebus.Sender, messages ...*azservicebus.Message) {
	t.Helper()
	batch := must(s.NewMessageBatch(ctx, nil))(t)
	for _, m := range messages {
		check(t, batch.AddMessage(m, nil))
	}
	check(t, s.SendMessageBatch(ctx, batch, nil))
}
