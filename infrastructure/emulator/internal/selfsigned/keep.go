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

// spare is how long a kept certificate has to be valid to be used again.
const spare = 30 * 24 * time.Hour

// Keep returns the certificate in a file, with its key, or makes one as New does and
// writes it there: if there is none yet, or it lacks one of the hosts or is about to
// expire. A file that is something else is an error.
func Keep(file, name string, hosts ...string) (tls.Certificate, error) {
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return tls.Certificate{}, fmt.Errorf("read the certificate: %w", err)
	default:
		kept, err := tls.X509KeyPair(text, text)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("%s is no certificate with its key: %w; remove it", file, err)
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
	text = append(PEM(made), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
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
	return time.Until(c.NotAfter) > spare
}
