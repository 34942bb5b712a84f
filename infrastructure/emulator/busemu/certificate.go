package busemu

import (
	"crypto/tls"

	"feedbox/infrastructure/emulator/internal/selfsigned"
)

// Certificate is a certificate of its own authority for Options.TLS and Options.AdminTLS.
type Certificate struct {
	// PEM is the authority for clients to trust: in a file named by SSL_CERT_FILE (Go,
	// Python) or NODE_EXTRA_CA_CERTS (Node), or imported into a Java trust store.
	PEM []byte
	key tls.Certificate
}

// NewCertificate makes a certificate for localhost, the loopback addresses and hosts, which
// are names or addresses with or without a port. It is valid for ten years.
func NewCertificate(hosts ...string) (*Certificate, error) {
	key, err := selfsigned.New("Service Bus emulator", hosts...)
	if err != nil {
		return nil, err
	}
	return &Certificate{PEM: selfsigned.PEM(key), key: key}, nil
}

// KeepCertificate is NewCertificate, but keeps the certificate and its key in a file. The next
// call returns the same one if it has the same hosts and is valid for another month, so that
// clients which trust it need no change.
func KeepCertificate(file string, hosts ...string) (*Certificate, error) {
	key, err := selfsigned.Keep(file, "Service Bus emulator", hosts...)
	if err != nil {
		return nil, err
	}
	return &Certificate{PEM: selfsigned.PEM(key), key: key}, nil
}

// Config returns a configuration for Options.TLS and Options.AdminTLS.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.key}, MinVersion: tls.VersionTLS12}
}
