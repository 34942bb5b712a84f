//go:build conformance

package cosmos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// java is azure-cosmos of the version in sdks/java.xml. It speaks HTTPS only.
var java = &sdk{
	tools:   []string{"java", "mvn", "keytool"},
	install: "mvn -q -B -f java.xml dependency:copy-dependencies -DoutputDirectory=lib",
	program: "java",
}

// TestJava runs java/Suite.java: items, batches, bulk, unique and hierarchical keys, the
// table of queries, the pull feed of both kinds.
func TestJava(t *testing.T) {
	for _, partitions := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d partitions", partitions), func(t *testing.T) { runJava(t, "Suite.java", partitions) })
	}
}

// TestJavaProcessor runs java/Processor.java: the change feed processor in three modes, with
// two hosts, a split under load, a restart and the estimated lag.
func TestJavaProcessor(t *testing.T) { runJava(t, "Processor.java", 2) }

func runJava(t *testing.T, program string, partitions int) {
	t.Helper()
	srv := cosmosemu.StartT(t, &cosmosemu.Options{TLS: true, Partitions: partitions, ContainerRetention: true})
	if text, err := runJavaOn(t, srv, program, partitions); err != nil || !allPassed.Match(text) {
		t.Errorf("java: %v", err)
	}
}

// runJavaOn runs a program of folder java on an emulator that speaks HTTPS.
func runJavaOn(t *testing.T, srv *cosmosemu.Server, program string, partitions int, args ...string) (text []byte, err error) {
	t.Helper()
	dir := java.folder(t, "the Java SDK was")
	copyInto(t, dir, "java")
	certificate, store := filepath.Join(dir, "cosmos.pem"), filepath.Join(dir, "trust.p12")
	if err := os.WriteFile(certificate, srv.CertificatePEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	trust := exec.CommandContext(t.Context(), "keytool", "-importcert", "-noprompt", "-alias", "feedbox",
		"-file", certificate, "-keystore", store, "-storetype", "PKCS12", "-storepass", "changeit")
	if text, err := trust.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	table, err := filepath.Abs(filepath.Join("queries", "queries.json"))
	if err != nil {
		t.Fatal(err)
	}
	return java.run(t, dir, []string{
		"COSMOS_ENDPOINT=" + srv.Endpoint(), "COSMOS_KEY=" + srv.Key(), "CONTROL=" + srv.ControlEndpoint(),
		fmt.Sprintf("COSMOS_PARTITIONS=%d", partitions), "QUERIES=" + table,
	}, append([]string{"-Djavax.net.ssl.trustStore=" + store, "-Djavax.net.ssl.trustStorePassword=changeit", "-cp", filepath.Join("..", "lib", "*"), program}, args...)...)
}
