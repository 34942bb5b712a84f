package cosmos

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
)

// kind is the kind of an endpoint: Azure, Microsoft's emulator or ours.
type kind string

const (
	azure kind = "azure"
	vnext kind = "vnext"
	ours  kind = "ours"
)

// target is the endpoint under test, with a database for the scripts.
type target struct {
	kind     kind
	endpoint string
	client   *azcosmos.Client
	database string
	ranges   int               // of each container; 0: unknown
	known    map[string]string // topic to line, of FEEDBOX_TEST_KNOWN_ISSUES
}

// openTarget connects to the endpoint in the environment, or to a new emulator whose containers
// have a number of physical ranges.
func openTarget(t *testing.T, ranges int) *target {
	t.Helper()
	w := &target{
		kind: kind(cmp.Or(os.Getenv("FEEDBOX_TEST_COSMOS_KIND"), string(azure))), endpoint: os.Getenv("FEEDBOX_TEST_COSMOS_ENDPOINT"),
	}
	key := cmp.Or(os.Getenv("FEEDBOX_TEST_COSMOS_KEY"), cosmosemu.WellKnownKey)
	if w.endpoint == "" {
		srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: ranges})
		w.ranges = ranges
		w.kind, w.endpoint, key = ours, srv.Endpoint(), srv.Key()
	}
	switch w.kind {
	case azure, ours:
	case vnext:
		w.known = readKnownIssues(t)
	default:
		t.Fatalf("FEEDBOX_TEST_COSMOS_KIND is %q: it must be azure, vnext or ours", w.kind)
	}
	credential, err := azcosmos.NewKeyCredential(key)
	if err != nil {
		t.Fatalf("FEEDBOX_TEST_COSMOS_KEY: %v", err)
	}
	if w.client, err = azcosmos.NewClientWithKey(w.endpoint, credential, cosmosfeed.ClientOptions(nil)); err != nil {
		t.Fatalf("FEEDBOX_TEST_COSMOS_ENDPOINT: %v", err)
	}
	w.makeDatabase(t)
	return w
}

func (w *target) makeDatabase(t *testing.T) {
	t.Helper()
	w.database = "feedbox-conformance-" + randomName()
	throughput := azcosmos.NewManualThroughputProperties(1000)
	_, err := w.client.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: w.database}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &throughput})
	if err != nil {
		t.Fatalf("create database %s at %s: %v", w.database, w.endpoint, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		db, err := w.client.NewDatabase(w.database)
		if err == nil {
			_, err = db.Delete(ctx, nil)
		}
		if err != nil {
			t.Errorf("database %s is left behind: %v", w.database, err)
		}
	})
}

// makeContainer creates a container partitioned by /pk for a script.
func (w *target) makeContainer(ctx context.Context, name string, s *script) (*azcosmos.ContainerClient, error) {
	db, err := w.client.NewDatabase(w.database)
	if err != nil {
		return nil, err
	}
	properties := azcosmos.ContainerProperties{
		ID:                     name,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Kind: azcosmos.PartitionKeyKindHash, Version: 2},
	}
	if s.ttl {
		on := int32(-1)
		properties.DefaultTimeToLive = &on
	}
	options := &azcosmos.CreateContainerOptions{}
	if s.splits { // its throughput must be its own, so that it can be raised
		own := azcosmos.NewManualThroughputProperties(400)
		options.ThroughputProperties = &own
	}
	if _, err := db.CreateContainer(ctx, properties, options); err != nil {
		return nil, fmt.Errorf("create container %s: %w", name, err)
	}
	return w.client.NewContainer(w.database, name)
}

// control calls the control endpoint of our emulator (cosmosemu/control_http.go).
func (w *target) control(ctx context.Context, path string, body map[string]any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	url := strings.TrimSuffix(w.endpoint, "/") + "/_emulator/" + path
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("control %s: %s", path, reply.Status)
	}
	return nil
}

// readKnownIssues reads a file of lines "topic  issues  what happens".
func readKnownIssues(t *testing.T) map[string]string {
	t.Helper()
	path := os.Getenv("FEEDBOX_TEST_KNOWN_ISSUES")
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("FEEDBOX_TEST_KNOWN_ISSUES: %v", err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			topic, _, _ := strings.Cut(line, " ")
			known[topic] = line
		}
	}
	return known
}

func randomName() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
