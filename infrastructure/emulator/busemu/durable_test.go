package busemu

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestRestart: messages, sequence numbers, delivery counts, session state and the duplicate
// history survive a restart.
func TestRestart(t *testing.T) {
	ctx := t.Context()
	o := &Options{DataDir: "data", FS: vfs.NewMem(), Topology: outboxTopology()}
	srv := must(Start(o))(t)
	client := srv.Client()
	sender := must(client.NewSender("contacts", nil))(t)
	sendBatch(ctx, t, sender, message("a", 1), message("a", 2))
	receiver := must(client.AcceptSessionForSubscription(ctx, "contacts", "all", "a", nil))(t)
	m := must(receiver.ReceiveMessages(ctx, 1, nil))(t)[0]
	first := *m.SequenceNumber
	check(t, receiver.AbandonMessage(ctx, m, nil))
	check(t, receiver.SetSessionState(ctx, []byte("state"), nil))
	check(t, client.Close(ctx))
	check(t, srv.Close())

	srv = startT(t, o)
	client = clientT(t, srv)
	sender = must(client.NewSender("contacts", nil))(t)
	sendBatch(ctx, t, sender, message("a", 2), message("a", 3)) // a-2 is a duplicate
	receiver = must(client.AcceptSessionForSubscription(ctx, "contacts", "all", "a", nil))(t)
	if state := must(receiver.GetSessionState(ctx, nil))(t); string(state) != "state" {
		t.Errorf("session state %q", state)
	}
	var got []*azservicebus.ReceivedMessage
	for len(got) < 3 {
		got = append(got, must(receiver.ReceiveMessages(ctx, 3-len(got), allAtOnce))(t)...)
	}
	for i, m := range got {
		if m.MessageID != fmt.Sprintf("a-%d", i+1) {
			t.Errorf("message %d is %s", i, m.MessageID)
		}
		if i > 0 && *m.SequenceNumber <= *got[i-1].SequenceNumber {
			t.Errorf("sequence numbers %d, %d", *got[i-1].SequenceNumber, *m.SequenceNumber)
		}
		check(t, receiver.CompleteMessage(ctx, m, nil))
	}
	if *got[0].SequenceNumber != first || got[0].DeliveryCount != 2 {
		t.Errorf("the first message has number %d, was %d, and delivery count %d", *got[0].SequenceNumber, first, got[0].DeliveryCount)
	}
	check(t, client.Close(ctx))
}

// TestTLS: one port serves TLS and plain TCP.
func TestTLS(t *testing.T) {
	ctx := t.Context()
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	srv := startT(t, &Options{TLS: web.TLS, Topology: &Topology{Queues: []Queue{{Name: "q"}}}})
	for name, cs := range map[string]string{"TLS": srv.ConnectionString(), "plain": srv.ConnectionString() + ";UseDevelopmentEmulator=true"} {
		client := must(azservicebus.NewClientFromConnectionString(cs, &azservicebus.ClientOptions{
			TLSConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"},
		}))(t)
		sender := must(client.NewSender("q", nil))(t)
		if err := sender.SendMessage(ctx, body(name), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		check(t, client.Close(ctx))
	}
	if n := len(must(srv.Peek("q", 10))(t)); n != 2 {
		t.Errorf("%d messages came", n)
	}
}

// BenchmarkStart is the cost of an emulator per test.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		srv, err := Start(&Options{Topology: outboxTopology()})
		if err != nil {
			b.Fatal(err)
		}
		if err := srv.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestIdleMemory: an idle emulator with a connected client takes little memory.
func TestIdleMemory(t *testing.T) {
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	for name, dir := range map[string]string{"memory": "", "durable": t.TempDir()} {
		before := used()
		srv := must(Start(&Options{DataDir: dir, Topology: outboxTopology()}))(t)
		client := srv.Client()
		sender := must(client.NewSender("contacts", nil))(t)
		sendBatch(t.Context(), t, sender, message("a", 1))
		after := used()
		t.Logf("%s: %d kB", name, (int64(after)-int64(before))>>10)
		if after > before+20<<20 {
			t.Errorf("%s: %d MB in use", name, (after-before)>>20)
		}
		check(t, client.Close(t.Context()))
		check(t, srv.Close())
	}
}
