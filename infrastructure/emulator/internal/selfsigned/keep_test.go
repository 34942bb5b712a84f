package selfsigned_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/internal/selfsigned"
)

// A kept certificate is used again as long as it is valid for all hosts.
func TestCertificateIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tls.pem")
	keep := func(hosts ...string) []byte {
		t.Helper()
		c, err := selfsigned.Keep(file, "test", hosts...)
		if err != nil {
			t.Fatal(err)
		}
		return c.Certificate[0]
	}
	first := keep("127.0.0.1:8081", "emulator")
	if !bytes.Equal(first, keep("127.0.0.1:8081")) || !bytes.Equal(first, keep("emulator")) || !bytes.Equal(first, keep()) {
		t.Error("the certificate is made again")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is in a file of mode %v: %v", info.Mode(), err)
	}
	other := keep("other:8081")
	if bytes.Equal(first, other) || !bytes.Equal(other, keep("other:8081")) {
		t.Error("a certificate without the host is kept")
	}
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := selfsigned.Keep(file, "test"); err == nil || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("a file that is something else: %v", err)
	}
}

// Clients trust the authority only. A server's certificate that is an authority is refused by
// rustls.
func TestLeafIsSignedByTheAuthorityToTrust(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tls.pem")
	made, err := selfsigned.Keep(file, "test", "emulator:8081")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := selfsigned.Keep(file, "test", "emulator:8081")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []tls.Certificate{made, kept} {
		pool := x509.NewCertPool()
		text := selfsigned.PEM(c)
		if !pool.AppendCertsFromPEM(text) || bytes.Count(text, []byte("BEGIN")) != 1 {
			t.Fatalf("to trust: %s", text)
		}
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if leaf.IsCA || leaf.Issuer.String() == leaf.Subject.String() {
			t.Errorf("%s, signed by %s, is an authority", leaf.Subject, leaf.Issuer)
		}
		for _, host := range []string{"localhost", "emulator", "127.0.0.1"} {
			if _, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool}); err != nil {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
}
