package cosmosemu

import (
	"crypto/tls"
	"net"

	"feedbox/infrastructure/emulator/internal/selfsigned"
)

// newCertificate makes a certificate for localhost, the loopback addresses and the name or
// address in host.
func newCertificate(host string) (*tls.Certificate, error) {
	var names []string
	if name, _, err := net.SplitHostPort(host); err == nil && name != "" {
		names = append(names, name)
	}
	c, err := selfsigned.New("Cosmos DB emulator", names...)
	return &c, err
}

// CertificatePEM is the certificate clients must trust, nil without TLS. Written
// to a file it can be named by SSL_CERT_FILE.
func (s *Server) CertificatePEM() []byte {
	if s.cert == nil {
		return nil
	}
	return selfsigned.PEM(*s.cert)
}
