package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/spf13/pflag"

	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
	"feedbox/tests/testkit"
)

// TestMain lets the test binary run as a relay, because the playground and certify start their own
// binary for their relays, and as the children of tests.
func TestMain(m *testing.M) {
	verb := ""
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	switch verb {
	case "emulators", "certify":
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(exitFailure)
		}()
		main()
	case relayCommandName:
		main()
	case "crash":
		if _, err := startChild(os.Stderr, nil, emulatorsWith(os.Args[2])...); err != nil {
			panic(err)
		}
		for ; ; time.Sleep(20 * time.Millisecond) {
			if _, err := readEndpoints(os.Args[2]); err == nil {
				panic("a test that panics runs no clean-up")
			}
		}
	default:
		testkit.Main(m) // more tests at a time, because most wait for their children
	}
}

// startChild runs the test binary as another program. The child ends with this process, however that
// ends, because the system then closes its standard input.
func startChild(out io.Writer, environ []string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), environ...), out, out
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return cmd, cmd.Start()
}

func TestChildrenOfATestEndWithIt(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready.json")
	var said bytes.Buffer
	crash := exec.CommandContext(t.Context(), os.Args[0], "crash", ready)
	crash.Stderr, crash.WaitDelay = &said, time.Minute
	err := crash.Run() // it waits for the child, too, which has the same output
	if !strings.Contains(said.String(), "runs no clean-up") {
		t.Fatalf("%v: %s", err, said.String())
	}
	e, err := readEndpoints(ready)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := http.Get(e.CosmosEndpoint); err == nil {
		_ = reply.Body.Close()
		t.Error("the emulators outlived the test that started them")
		if child, err := os.FindProcess(e.PID); err == nil {
			_ = child.Kill()
		}
	}
}

// The emulators alone have what a service of its own needs: its database, its containers and its
// topics, as a relay requires them. They answer only to this machine and to allowed hosts.
func TestEmulatorsCreateTheNamesOfAService(t *testing.T) {
	dir := t.TempDir()
	opts := &options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.register(flags, false)
	ready := filepath.Join(dir, "ready.json")
	if err := flags.Parse([]string{
		"--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0", "--ephemeral", "--ready-file", ready,
		"--database", "shop", "--container", "totals", "--container", "orders=/customerId", "--topic", "orders/billing", "--topic", "orders/audit", "--topic", "stock", "--throttle", "6000", "--partitions", "3",
	}); err != nil {
		t.Fatal(err)
	}
	e := startDev(t, opts, "FEEDBOX_ALLOWED_HOSTS=box.test")
	credential, err := azcosmos.NewKeyCredential(e.CosmosKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(e.CosmosEndpoint, credential, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := cosmos.Verify(t.Context(), client, "shop", append(cosmos.RelayContainers(document.EventContract{}, "data", "leases", "parked"),
		cosmos.DataContainer("totals"), cosmos.ContainerSpec{ID: "orders", PartitionKeyPath: "/customerId", TTL: true})...); err != nil || e.Database != "shop" {
		t.Errorf("database %s: %v", e.Database, err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(e.CosmosEndpoint, "/")+"/_emulator/dbs/shop/colls/data/ranges", nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	ranges, err := io.ReadAll(reply.Body)
	if _ = reply.Body.Close(); err != nil || strings.Count(string(ranges), `"throughput":2000`) != 3 {
		t.Errorf("ranges of data: %s, %v; want three with 2000 RU/s", ranges, err)
	}
	bus, err := azservicebus.NewClientFromConnectionString(e.ServiceBusConnectionString, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bus.Close(context.WithoutCancel(t.Context())) }()
	for topic, subscriptions := range map[string][]string{"orders": {"billing", "audit"}, "stock": {"all"}} {
		sender, err := bus.NewSender(topic, nil)
		if err != nil {
			t.Fatal(err)
		}
		session, id := "k", "e1"
		for range 2 { // duplicate detection drops the second
			if err := sender.SendMessage(t.Context(), &azservicebus.Message{MessageID: &id, SessionID: &session}, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range subscriptions {
			receiver, err := bus.AcceptSessionForSubscription(t.Context(), topic, name, session, nil)
			if err != nil {
				t.Fatal(err)
			}
			if messages, err := receiver.PeekMessages(t.Context(), 5, nil); err != nil || len(messages) != 1 {
				t.Errorf("%s/%s has %d messages, %v; want 1", topic, name, len(messages), err)
			}
		}
	}
	for _, endpoint := range []string{e.CosmosEndpoint, e.ServiceBusAdmin + "/health"} {
		for host, refused := range map[string]bool{"evil.example": true, "box.test": false, "localhost": false} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			reply, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = reply.Body.Close()
			if (reply.StatusCode == http.StatusMisdirectedRequest) != refused {
				t.Errorf("%s answered %d to the host %s", endpoint, reply.StatusCode, host)
			}
		}
	}
	for _, wrong := range []options{{containers: []string{"=/x"}}, {containers: []string{"x=y"}}, {topics: []string{"/x"}}, {topics: []string{"x/"}}} {
		wrong.partitions, wrong.dataDir, wrong.set = 1, "x", func(string) bool { return false }
		if err := wrong.validate(); err == nil || !strings.Contains(err.Error(), "for example orders") {
			t.Errorf("%v %v: %v", wrong.containers, wrong.topics, err)
		}
	}
}
