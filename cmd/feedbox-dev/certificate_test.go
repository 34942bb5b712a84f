package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/spf13/pflag"
)

// With --servicebus-certificate the broker and its admin API are reached by TLS, by
// whoever trusts the file.
func TestTheServiceBusEmulatorSpeaksTLS(t *testing.T) {
	opts := &options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.register(flags, false)
	ready, certificate := filepath.Join(t.TempDir(), "ready.json"), filepath.Join(t.TempDir(), "servicebus.pem")
	if err := flags.Parse([]string{
		"--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0",
		"--ephemeral", "--ready-file", ready, "--servicebus-certificate", certificate,
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- dev(ctx, opts, io.Discard, io.Discard, nil) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	e := awaitReady(t, ready)
	pem, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	trusting := &tls.Config{RootCAs: roots}

	admin := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting}}
	defer admin.CloseIdleConnections()
	reply, err := admin.Get(e.ServiceBusAdmin + "/health")
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if !strings.HasPrefix(e.ServiceBusAdmin, "https://") || reply.StatusCode != http.StatusOK {
		t.Errorf("%s answers %s", e.ServiceBusAdmin, reply.Status)
	}
	client, err := azservicebus.NewClientFromConnectionString(e.ServiceBusConnectionString, &azservicebus.ClientOptions{TLSConfig: trusting})
	if err != nil {
		t.Fatal(err)
	}
	sender, err := client.NewSender(topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := "1"
	if err := sender.SendMessage(ctx, &azservicebus.Message{MessageID: &id, SessionID: &id}, nil); err != nil {
		t.Error(err)
	}
	if err := client.Close(ctx); err != nil {
		t.Error(err)
	}
}
