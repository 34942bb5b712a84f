package cosmosemu

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"

	"feedbox/infrastructure/emulator/internal/selfsigned"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// clients are the clients that a server offers, built on first use.
type clients struct {
	mu     sync.Mutex // guards the fields below
	http   *http.Client
	cosmos *azcosmos.Client
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cosmos != nil {
		c.cosmos.Close()
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// HTTPClient returns a client that reaches the emulator, including over TLS and over the
// in-memory network. Close closes its idle connections.
func (s *Server) HTTPClient() *http.Client {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	return s.httpClientLocked()
}

func (s *Server) httpClientLocked() *http.Client {
	if s.clients.http != nil {
		return s.clients.http
	}
	t := &http.Transport{MaxIdleConnsPerHost: 128}
	if s.options.Network != nil {
		t.DialContext = s.options.Network.DialContext
	}
	if s.cert != nil {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(s.CertificatePEM())
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	s.clients.http = &http.Client{Transport: t}
	return s.clients.http
}

// ClientOptions returns azcosmos options that reach the emulator.
func (s *Server) ClientOptions() *azcosmos.ClientOptions {
	return &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: s.HTTPClient()}}
}

// Client returns an azcosmos client of the emulator. Every call returns the same client,
// and Close closes it. For other options call azcosmos.NewClientWithKey with Endpoint, Key
// and ClientOptions.
func (s *Server) Client() *azcosmos.Client {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	if s.clients.cosmos == nil {
		credential, err := azcosmos.NewKeyCredential(s.Key())
		if err != nil {
			panic("cosmosemu: Start has checked the key: " + err.Error())
		}
		s.clients.cosmos, err = azcosmos.NewClientWithKey(s.Endpoint(), credential,
			&azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: s.httpClientLocked()}})
		if err != nil {
			panic("cosmosemu: the endpoint is a URL: " + err.Error())
		}
	}
	return s.clients.cosmos
}

// newCertificate creates a certificate for localhost, the loopback addresses and the name
// or address in host.
func newCertificate(host string) (*tls.Certificate, error) {
	var names []string
	if name, _, err := net.SplitHostPort(host); err == nil && name != "" {
		names = append(names, name)
	}
	c, err := selfsigned.New("Cosmos DB emulator", names...)
	return &c, err
}

// CertificatePEM is the authority that clients must trust, nil without TLS. To trust it
// on Linux, write it to a file and set SSL_CERT_FILE to the file's path.
func (s *Server) CertificatePEM() []byte {
	if s.cert == nil {
		return nil
	}
	return selfsigned.PEM(*s.cert)
}
