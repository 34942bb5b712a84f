package e2e

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/tests/testkit"
)

func TestReadyFileContainsEveryEndpoint(t *testing.T) {
	binaries := testkit.Build(t)
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"everything": {testkit.AnyPorts("--ephemeral"), []string{"api", "ops", "page"}},
		"emulators":  {testkit.EmulatorPorts("--ephemeral"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			ready := filepath.Join(t.TempDir(), "ready.json")
			p := testkit.Start(t, "feedbox-dev", binaries.Dev, nil, append(c.args, "--ready-file", ready)...)
			testkit.Eventually(t, time.Minute, "the ready file", func() bool { _, err := os.Stat(ready); return err == nil })
			data, err := os.ReadFile(ready)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			want := append([]string{
				"cosmosEndpoint", "cosmosKey", "serviceBusConnectionString", "serviceBusAdmin", "database", "container", "leases", "parked", "topic", "subscription", "pid",
			}, c.want...)
			for _, key := range want {
				if value := got[key]; value == nil || value == "" {
					t.Errorf("the ready file lacks %q: %s", key, data)
				}
			}
			if len(got) != len(want) {
				t.Errorf("the ready file has %d members, want %d: %s", len(got), len(want), data)
			}
			if ops, _ := got["ops"].(string); ops != "" {
				for _, name := range []string{"outbox_lease_owned", "go_goroutines"} { // of the relay, of the process
					testkit.Eventually(t, time.Minute, "metric "+name, func() bool {
						return strings.Contains(request(t, http.MethodGet, ops+"/metrics", "", nil).body, name)
					})
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if code := p.Terminate(ctx); code != 0 {
				t.Errorf("SIGTERM: exit code %d, want 0", code)
			}
			if _, err := os.Stat(ready); err == nil {
				t.Error("the ready file outlives the process")
			}
		})
	}
}

func TestOnlyTakenDefaultPortIsReplaced(t *testing.T) {
	binaries := testkit.Build(t)
	taken, err := net.Listen("tcp", "127.0.0.1:8081")
	if err == nil {
		defer func() { _ = taken.Close() }()
	} // otherwise another process uses the port already
	// The default port of --cosmos is in use.
	args := slices.DeleteFunc(testkit.EmulatorPorts("--ephemeral"), func(s string) bool { return s == "--cosmos" })
	args = slices.Delete(args, 1, 2) // its value
	p, e := testkit.StartDev(t, binaries, args...)
	if strings.Contains(e.CosmosEndpoint, ":8081") || !strings.Contains(p.Output(), "127.0.0.1:8081 is in use; cosmos is at ") {
		t.Errorf("endpoint %s, output:\n%s", e.CosmosEndpoint, p.Output())
	}

	asked := testkit.Start(t, "feedbox-dev", binaries.Dev, nil, append(args, "--cosmos", "127.0.0.1:8081")...)
	wantExit(t, asked, 1, "--cosmos 127.0.0.1:8081", "address already in use", "give another address")
}

func TestInvalidCommandLineExitsWith2(t *testing.T) {
	binaries := testkit.Build(t)
	for name, c := range map[string]struct {
		binary string
		args   []string
		env    []string
		want   []string
	}{
		"dev, unknown flag":    {binaries.Dev, []string{"--nope"}, nil, []string{"unknown flag: --nope"}},
		"dev, too many ranges": {binaries.Dev, []string{"--partitions", "65"}, nil, []string{"--partitions 65", "1 to 64"}},
		"dev, both storages":   {binaries.Dev, []string{"--ephemeral", "--data-dir", "x"}, nil, []string{"exclude each other"}},
		"no command":           {binaries.Feedbox, nil, nil, []string{"subcommand missing"}},
		"api, not configured":  {binaries.Feedbox, []string{"api"}, nil, []string{"FEEDBOX_COSMOS_ENDPOINT"}},
		"relay, all the faults": {binaries.Feedbox, []string{"relay"}, []string{"FEEDBOX_LEASE_EXPIRY=soon", "FEEDBOX_RELAY_MAX_ITEMS=-1", "FEEDBOX_COSMOS_KYE=x"}, []string{
			"FEEDBOX_COSMOS_ENDPOINT", "FEEDBOX_LEASE_EXPIRY", "FEEDBOX_RELAY_MAX_ITEMS", "FEEDBOX_COSMOS_KYE", "FEEDBOX_COSMOS_KEY", "FEEDBOX_SERVICEBUS_CONNECTION_STRING",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			wantExit(t, testkit.Start(t, name, c.binary, c.env, c.args...), 2, c.want...)
		})
	}
}

// The official emulator's Config.json creates its entities; an invalid one is an error.
func TestEmulatorsAcceptOfficialConfig(t *testing.T) {
	binaries := testkit.Build(t)
	config := filepath.Join(t.TempDir(), "Config.json")
	write := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Queues":[{"Name":"orders","Properties":{"RequiresSession":true}}]}]}}`)
	_, e := testkit.StartDev(t, binaries, testkit.EmulatorPorts("--ephemeral", "--config", config)...)
	client, err := azservicebus.NewClientFromConnectionString(e.ServiceBusConnectionString, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.Background()) }()
	session, err := client.AcceptSessionForQueue(t.Context(), "orders", "a", nil)
	if err != nil {
		t.Fatalf("the queue of the file does not exist: %v", err)
	}
	_ = session.Close(t.Context())

	write(`{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Queues":[{"Name":"orders","Properties":{"RequiresSessoin":true}}]}]}}`)
	wantExit(t, testkit.Start(t, "feedbox-dev", binaries.Dev, nil, testkit.EmulatorPorts("--ephemeral", "--config", config)...), 2, "--config", "RequiresSessoin")
}

// The service creates no containers, so its error names a missing one.
func TestMissingContainerIsReported(t *testing.T) {
	binaries := testkit.Build(t)
	_, e := testkit.StartDev(t, binaries, testkit.EmulatorPorts("--ephemeral")...)
	p := testkit.Start(t, "feedbox api", binaries.Feedbox, append(e.ServiceEnv("FEEDBOX_API_LISTEN=127.0.0.1:0"), "FEEDBOX_COSMOS_CONTAINER=nowhere"), "api")
	wantExit(t, p, 1, `the container "nowhere" does not exist`, "/partitionKey")
}

func wantExit(t *testing.T, p *testkit.Process, code int, output ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got := p.Wait(ctx); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	for _, text := range output {
		if !strings.Contains(p.Output(), text) {
			t.Errorf("output lacks %q:\n%s", text, p.Output())
		}
	}
}
