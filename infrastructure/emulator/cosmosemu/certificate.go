package cosmosemu

import (
	"crypto/tls"
	"net"

	"feedbox/infrastructure/emulator/internal/selfsigned"
)

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

// CertificatePEM is the certificate that clients must trust, nil without TLS. To trust it
// on Linux, write it to a file and set SSL_CERT_FILE to the file's path.
func (s *Server) CertificatePEM() []byte {
	if s.cert == nil {
		return nil
	}
	return selfsigned.PEM(*s.cert)
}
