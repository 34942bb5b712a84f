//go:build browser

package page

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// endpoints holds the entries of the ready file that the tests use.
type endpoints struct {
	API  string `json:"api"`
	Ops  string `json:"ops"`
	Page string `json:"page"`

	CosmosEndpoint             string `json:"cosmosEndpoint"`
	CosmosKey                  string `json:"cosmosKey"`
	ServiceBusConnectionString string `json:"serviceBusConnectionString"`

	ready string // path of the ready file
}

// dev runs feedbox-dev on free ports.
func dev(t *testing.T, more ...string) (*testkit.Process, endpoints) {
	t.Helper()
	if chromium() == "" {
		t.Skip("SKIPPED: Chromium is absent: install chromium, or the page is not tested in a browser")
	}
	bin := testkit.Build(t)
	ready := filepath.Join(t.TempDir(), "ready.json")
	args := []string{"--ephemeral", "--ready-file", ready}
	for _, flag := range []string{"api", "ops", "page", "cosmos", "servicebus", "servicebus-admin"} {
		args = append(args, "--"+flag, "127.0.0.1:0")
	}
	p := testkit.Start(t, "feedbox-dev", bin.Dev, nil, append(args, more...)...)
	e := endpoints{ready: ready}
	await(t, "feedbox-dev", func() bool {
		text, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(text, &e) == nil
	})
	return p, e
}

// await waits until a condition is true.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if so() {
			return
		}
	}
	t.Fatalf("%s: not within %s", what, patience)
}

// consoleVariables point feedbox console to the services of feedbox-dev.
func consoleVariables(e endpoints, listen string, more ...string) []string {
	return append([]string{
		"FEEDBOX_COSMOS_ENDPOINT=" + e.CosmosEndpoint, "FEEDBOX_COSMOS_KEY=" + e.CosmosKey,
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + e.ServiceBusConnectionString,
		"FEEDBOX_CONSOLE_LISTEN=" + listen, "FEEDBOX_CONSOLE_METRICS=" + e.Ops + "/metrics",
	}, more...)
}
