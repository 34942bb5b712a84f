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

	"feedbox/tests/servers"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/spf13/pflag"
)

// With a certificate, both emulators and the admin API serve TLS to clients that trust the
// files. The certificate stays the same after a restart.
func TestEmulatorsServeTLS(t *testing.T) {
	dir := t.TempDir()
	bus := servers.Address(t) // the same after the restart, because the certificate contains the port
	first := serveTLS(t, dir, bus)
	if again := serveTLS(t, dir, bus); again != first {
		t.Error("the certificate changed after a restart")
	}
}

// serveTLS runs the emulators once and returns the certificate to trust.
func serveTLS(t *testing.T, dir, bus string) string {
	t.Helper()
	opts := &options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.register(flags, false)
	ready, cosmos := filepath.Join(dir, "ready.json"), filepath.Join(dir, "cosmos.pem")
	if err := flags.Parse([]string{
		"--cosmos", "127.0.0.1:0", "--servicebus", bus, "--servicebus-admin", "127.0.0.1:0",
		"--data-dir", filepath.Join(dir, "data"), "--ready-file", ready, "--servicebus-certificate", filepath.Join(dir, "servicebus.pem"), "--cosmos-certificate", cosmos,
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
	pem, err := os.ReadFile(cosmos)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	trusting := &tls.Config{RootCAs: roots}

	web := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting}}
	defer web.CloseIdleConnections()
	for url, want := range map[string]int{e.ServiceBusAdmin + "/health": http.StatusOK, e.CosmosEndpoint: http.StatusUnauthorized} {
		reply, err := web.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if !strings.HasPrefix(url, "https://") || reply.StatusCode != want {
			t.Errorf("%s answers %s", url, reply.Status)
		}
	}
	if err := e.check(t.Context()); err != nil {
		t.Errorf("not healthy: %v", err)
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
	return string(pem)
}
