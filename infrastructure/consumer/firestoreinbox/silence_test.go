package firestoreinbox_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/firestoreinbox"
)

// Each operation on a silent server ends within its limit.
func TestOperationsEndIfTheServerIsSilent(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, b *firestoreinbox.Inbox) error{
		"last":   func(ctx context.Context, b *firestoreinbox.Inbox) error { _, err := b.Last(ctx, "k"); return err },
		"record": func(ctx context.Context, b *firestoreinbox.Inbox) error { return b.Record(ctx, "k", consumer.Mark{}) },
		"do": func(ctx context.Context, b *firestoreinbox.Inbox) error {
			return b.Do(ctx, event(1), func(context.Context, *firestore.Transaction) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := bufconn.Listen(1 << 16)
				defer func() { _ = listener.Close() }()
				client, err := firestore.NewClient(t.Context(), "p", option.WithEndpoint("passthrough:///memory"), option.WithoutAuthentication(),
					option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
					option.WithGRPCDialOption(grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })))
				must(t, err)
				defer func() { _ = client.Close() }()
				b, err := firestoreinbox.New(client, "billing", &firestoreinbox.Options{Timeout: 3 * time.Second})
				must(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				began := time.Now()
				err = do(ctx, b)
				if took := time.Since(began); err == nil || took > 3*time.Second {
					t.Errorf("error %v after %v, want one within 3 s", err, took)
				}
			})
		})
	}
}
