package selfsigned_test

import (
	"bytes"
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
