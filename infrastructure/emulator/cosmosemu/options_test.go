package cosmosemu_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
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
		"Throughput is -1":                        {Throughput: -1},
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

// The Rust SDK tries HTTP/2 first: with prior knowledge on plain ports, and by ALPN over TLS.
func TestBothVersionsOfHTTPAreServed(t *testing.T) {
	for _, secure := range []bool{false, true} {
		srv, c := start(t, &cosmosemu.Options{TLS: secure})
		create(t, c, "1", "a")
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(srv.CertificatePEM())
		for _, version := range []int{1, 2} {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, Protocols: &http.Protocols{}}
			transport.Protocols.SetHTTP1(version == 1)
			transport.Protocols.SetHTTP2(version == 2 && secure)
			transport.Protocols.SetUnencryptedHTTP2(version == 2 && !secure)
			client := &http.Client{Transport: transport}
			for _, r := range []struct {
				path, token string
				want        int
			}{
				{"", "", http.StatusUnauthorized},
				{"none", "", http.StatusMethodNotAllowed},
				{"", strings.Repeat("x", 200<<10), http.StatusRequestHeaderFieldsTooLarge},
			} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.Endpoint()+r.path, nil)
				must(t, err)
				req.Header.Set("x-ms-session-token", r.token)
				got, err := client.Do(req)
				if len(r.token) > 0 && err != nil {
					continue // the client knows the limit, or the connection is closed while it sends
				}
				must(t, err)
				_, err = io.Copy(io.Discard, got.Body)
				if err != nil || got.ProtoMajor != version || got.StatusCode != r.want {
					t.Errorf("TLS %t, path %q, a token of %d bytes: %s %d, want HTTP/%d %d (%v)", secure, r.path, len(r.token), got.Proto, got.StatusCode, version, r.want, err)
				}
				must(t, got.Body.Close())
			}
			client.CloseIdleConnections()
		}
	}
}

func TestHTTP2AdvertisesItsLimits(t *testing.T) {
	srv := cosmosemu.StartT(t)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", srv.Addr())
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")) // and an empty SETTINGS frame
	must(t, err)
	head := make([]byte, 9)
	_, err = io.ReadFull(conn, head)
	must(t, err)
	body := make([]byte, int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(conn, body)
	must(t, err)
	got := map[uint16]uint32{}
	for ; len(body) >= 6; body = body[6:] {
		got[binary.BigEndian.Uint16(body)] = binary.BigEndian.Uint32(body[2:])
	}
	const streams, headers = 3, 6 // RFC 9113, section 6.5.2
	if got[streams] != 100 || got[headers] < 64<<10 || got[headers] > 66<<10 {
		t.Errorf("settings %v", got)
	}
}

// A lost answer of HTTP/2 fails its own stream; the connection serves the next request.
func TestLossOverHTTP2EndsTheStream(t *testing.T) {
	srv, _ := start(t, nil)
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	key, err := azcosmos.NewKeyCredential(srv.Key())
	must(t, err)
	cosmos, err := azcosmos.NewClientWithKey(srv.Endpoint(), key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: client, Retry: policy.RetryOptions{MaxRetries: -1}}})
	must(t, err)
	t.Cleanup(cosmos.Close)
	c, err := cosmos.NewContainer("db", "c")
	must(t, err)
	create(t, c, "1", "a")
	for _, loss := range []cosmosemu.Loss{cosmosemu.Reset, cosmosemu.Truncate} {
		srv.Control(cosmosemu.OpReadItem, cosmosemu.Times(1, cosmosemu.LostReply(loss)))
		if _, err := c.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "1", nil); err == nil {
			t.Errorf("loss %v: the answer arrives", loss)
		}
		if _, err := c.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "1", nil); err != nil {
			t.Errorf("after loss %v: %v", loss, err)
		}
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
