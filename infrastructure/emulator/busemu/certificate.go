package busemu

import (
	"crypto/tls"

	"feedbox/infrastructure/emulator/internal/selfsigned"
)

// Certificate is a self-signed certificate for Options.TLS and Options.AdminTLS.
type Certificate struct {
	// PEM is what clients must trust. Written to a file it can be named by SSL_CERT_FILE
	// (Go, Python), NODE_EXTRA_CA_CERTS (Node) or imported into a Java trust store.
	PEM []byte
	key tls.Certificate
}

// NewCertificate makes a certificate for localhost, the loopback addresses and hosts,
// which are names or addresses, with or without a port. It is valid for ten years.
func NewCertificate(hosts ...string) (*Certificate, error) {
	key, err := selfsigned.New("Service Bus emulator", hosts...)
	if err != nil {
		return nil, err
	}
	return &Certificate{PEM: selfsigned.PEM(key), key: key}, nil
}

// KeepCertificate is NewCertificate with the certificate and its key kept in a file: the
// next call returns the same one, if it is of the same hosts and valid for another month.
// So what trusts it need not be told again.
func KeepCertificate(file string, hosts ...string) (*Certificate, error) {
	key, err := selfsigned.Keep(file, "Service Bus emulator", hosts...)
	if err != nil {
		return nil, err
	}
	return &Certificate{PEM: selfsigned.PEM(key), key: key}, nil
}

// Config is for Options.TLS and Options.AdminTLS.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.key}, MinVersion: tls.VersionTLS12}
}
