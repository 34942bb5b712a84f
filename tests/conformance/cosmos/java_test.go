//go:build conformance

package cosmos

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

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

// neighbours is our change feed processor (the program of directory interop) and the Java
// SDK's, on one feed with their leases in one container.
type neighbours struct {
	t            *testing.T
	srv          *cosmosemu.Server
	program      string
	ready, trust string
}

// TestJavaNeighbour starts both with the same name, which is not supported: see
// changefeed/INTEROP.md. The second one must fail with a clear error and must not change the
// leases of the first, which continues.
func TestJavaNeighbour(t *testing.T) {
	n := newNeighbours(t)
	t.Run("Java first", func(t *testing.T) {
		n.account(t, "java", 40)
		n.java("java", "same", 40, "delivered 40 of 40 documents")
		before := n.leases("java")
		n.golang("java", "same", 4, "written by the Java processor")
		n.unchanged("java", before)
		n.java("java", "same", 0, "delivered 0 of 0 documents")
	})
	t.Run("ours first", func(t *testing.T) {
		n.account(t, "ours", 40)
		n.golang("ours", "same", 12, "delivered 40 of 40 documents")
		before := n.leases("ours")
		n.java("ours", "same", 0, "failed: ")
		n.unchanged("ours", before)
		n.golang("ours", "same", 4, "delivered 0 of 0 documents")
	})
	t.Run("ours first, and nothing to deliver", func(t *testing.T) {
		n.account(t, "empty", 0)
		n.golang("empty", "same", 4, "delivered 0 of 0 documents")
		before := n.leases("empty")
		n.java("empty", "same", 0, "failed: ")
		n.unchanged("empty", before)
	})
	t.Run("side by side with names of their own", func(t *testing.T) {
		n.account(t, "both", 40)
		n.golang("both", "ours", 12, "delivered 40 of 40 documents")
		n.java("both", "theirs", 40, "delivered 40 of 40 documents")
		n.golang("both", "ours", 4, "delivered 0 of 0 documents")
		n.java("both", "theirs", 0, "delivered 0 of 0 documents")
	})
}

func newNeighbours(t *testing.T) *neighbours {
	t.Helper()
	n := &neighbours{t: t, srv: cosmosemu.StartT(t, &cosmosemu.Options{TLS: true, ContainerRetention: true})}
	dir := t.TempDir()
	n.program, n.ready, n.trust = filepath.Join(dir, "interop"), filepath.Join(dir, "ready.json"), filepath.Join(dir, "cosmos.pem")
	ready, err := json.Marshal(map[string]string{"cosmosEndpoint": n.srv.Endpoint(), "cosmosKey": n.srv.Key()})
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{n.ready: ready, n.trust: n.srv.CertificatePEM()} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", n.program, "./interop").CombinedOutput(); err != nil {
		t.Fatalf("build ours: %v\n%s", err, text)
	}
	return n
}

// account creates a database with a feed of some items and a container of leases.
func (n *neighbours) account(t *testing.T, database string, items int) {
	t.Helper()
	n.t = t
	for _, c := range []cosmosemu.ContainerProps{{ID: "feed", PartitionKey: []string{"/pk"}, Partitions: 2}, {ID: "leases", PartitionKey: []string{"/id"}}} {
		if err := n.srv.CreateContainer(database, c); err != nil {
			t.Fatal(err)
		}
	}
	feed, err := n.srv.Client().NewContainer(database, "feed")
	if err != nil {
		t.Fatal(err)
	}
	for i := range items {
		id := fmt.Sprint(i)
		if _, err := feed.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(id), fmt.Appendf(nil, `{"id":%q,"pk":%q}`, id, id), nil); err != nil {
			t.Fatal(err)
		}
	}
}

func (n *neighbours) golang(database, name string, seconds int, want string) {
	n.t.Helper()
	run := exec.CommandContext(n.t.Context(), n.program, n.ready, database, name, fmt.Sprint(seconds))
	run.Env = append(os.Environ(), "SSL_CERT_FILE="+n.trust)
	text, _ := run.CombinedOutput() // some tests expect it to fail
	if !strings.Contains(string(text), want) {
		n.t.Errorf("ours says\n%swant %q", text, want)
	}
}

func (n *neighbours) java(database, name string, documents int, want string) {
	n.t.Helper()
	text, _ := runJavaOn(n.t, n.srv, "Neighbour.java", 2, database, name, fmt.Sprint(documents))
	if !strings.Contains(string(text), want) {
		n.t.Errorf("Java says\n%swant %q", text, want)
	}
}

// leases returns the ETags of the lease records by id.
func (n *neighbours) leases(database string) map[string]string {
	n.t.Helper()
	items, err := n.srv.Items(database, "leases")
	if err != nil || len(items) == 0 {
		n.t.Fatalf("%d leases: %v", len(items), err)
	}
	out := make(map[string]string)
	for _, item := range items {
		var lease struct{ ID string }
		if err := json.Unmarshal(item, &lease); err != nil {
			n.t.Fatal(err)
		}
		out[lease.ID] = string(item)
	}
	return out
}

// unchanged fails if a lease has changed; new ones are allowed.
func (n *neighbours) unchanged(database string, before map[string]string) {
	n.t.Helper()
	now := n.leases(database)
	maps.DeleteFunc(now, func(id, _ string) bool { return before[id] == "" })
	for id, lease := range before {
		if now[id] != lease {
			n.t.Errorf("the lease %s was\n%s\nand is\n%s", id, lease, now[id])
		}
	}
}
