package selfsigned

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// minValidity is the remaining validity that a kept certificate needs to be used again.
const minValidity = 30 * 24 * time.Hour

// Keep returns the certificate in a file with its key. It creates a new one with New and writes
// it to the file if there is none yet, if a host is missing from it, if it expires soon, or if it
// is an authority. Any other content of the file is an error.
func Keep(file, name string, hosts ...string) (tls.Certificate, error) {
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return tls.Certificate{}, fmt.Errorf("read the certificate: %w", err)
	default:
		kept, err := tls.X509KeyPair(text, text)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("%s is not a certificate with its key: %w: remove the file", file, err)
		}
		if serves(kept.Leaf, hosts) {
			return kept, nil
		}
	}
	made, err := New(name, hosts...)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("encode the key: %w", err)
	}
	text = append(chainPEM(made.Certificate), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return tls.Certificate{}, fmt.Errorf("keep the certificate: %w", err)
	}
	return made, nil
}

func serves(c *x509.Certificate, hosts []string) bool {
	for _, host := range hosts {
		if c.VerifyHostname(host) != nil {
			return false
		}
	}
	return !c.IsCA && time.Until(c.NotAfter) > minValidity // earlier versions kept an authority
}
