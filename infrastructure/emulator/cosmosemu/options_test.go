package cosmosemu_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
)

// recorder replaces a *testing.T and records its result.
type recorder struct {
	fatal   string
	cleanup []func()
}

func (*recorder) Helper()                {}
func (r *recorder) Cleanup(after func()) { r.cleanup = append(r.cleanup, after) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal += fmt.Sprintf(format, args...)
}

// end runs the cleanups, as the testing package does after a test.
func (r *recorder) end() {
	for _, after := range slices.Backward(r.cleanup) {
		after()
	}
}

// Start and StartT refuse contradictory options and report all of them.
func TestContradictoryOptions(t *testing.T) {
	network := pipenet.New()
	listener, err := network.Listen("cosmos:8081")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for want, o := range map[string]*cosmosemu.Options{
		"Addr and Listener exclude each other":    {Addr: "127.0.0.1:0", Listener: listener},
		"Addr and Network exclude each other":     {Addr: "127.0.0.1:0", Network: network},
		"Listener and Network exclude each other": {Listener: listener, Network: network},
		"FS is set but DataDir is not":            {FS: vfs.NewMem()},
		"Certificate is set but TLS is not":       {Certificate: &tls.Certificate{}},
		"Key is not base64":                       {Key: "?", Partitions: -1},
		"Partitions is -1":                        {Key: "?", Partitions: -1},
		`Consistency is "strong"`:                 {Consistency: "strong"},
		"needs Session or weaker":                 {Consistency: "Strong", StaleReads: time.Second},
		`"nohost" is not host:port`:               {Host: "nohost"},
	} {
		if srv, err := cosmosemu.Start(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
			if err == nil {
				_ = srv.Close()
			}
		}
		r := &recorder{}
		if srv := cosmosemu.StartT(r, o); srv != nil || !strings.Contains(r.fatal, want) {
			t.Errorf("StartT: want %q, the test ended with %q", want, r.fatal)
		}
	}
	r := &recorder{}
	if srv := cosmosemu.StartT(r, nil, nil); srv != nil || !strings.Contains(r.fatal, "takes one Options, not 2") {
		t.Errorf("two options: the test ended with %q", r.fatal)
	}
}

func TestGivenCertificateIsUsed(t *testing.T) {
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	srv, _ := start(t, &cosmosemu.Options{TLS: true, Certificate: &other.TLS.Certificates[0]})
	reply, err := srv.HTTPClient().Get(srv.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	if shown := reply.TLS.PeerCertificates[0]; !shown.Equal(other.Certificate()) {
		t.Errorf("the certificate of %s was shown, want the given one", shown.Subject)
	}
}
