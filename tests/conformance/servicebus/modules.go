package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// moduleSuite is the tests of a Go module that uses the SDK. They run in a module of their own, with the
// patched copy of the SDK.
type moduleSuite struct {
	name    string // of -suite
	title   string
	require string // the module with its version
	program string // a test file that calls the tests; empty: the tests are in the package of args
	args    []string
	tests   int // with their subtests, all of which must pass
}

var moduleSuites = []moduleSuite{
	{ // They send, receive, acknowledge and reject through topics that they create and delete.
		name: "gocloud", title: "gocloud.dev/pubsub/azuresb v0.47.0, its own tests",
		require: "gocloud.dev v0.47.0", args: []string{"gocloud.dev/pubsub/azuresb", "-record"}, tests: 35,
	},
	{ // They are those that Dapr runs for each of its components.
		name: "dapr", title: "Dapr's components v1.18.0, their conformance tests for topics, queues and Cosmos DB",
		require: "github.com/dapr/components-contrib v1.18.0", program: daprProgram, args: []string{"."}, tests: 51,
	},
}

const daprProgram = `package suite

import (
	"os"
	"testing"

	"github.com/dapr/components-contrib/pubsub"
	"github.com/dapr/components-contrib/pubsub/azure/servicebus/queues"
	"github.com/dapr/components-contrib/pubsub/azure/servicebus/topics"
	"github.com/dapr/components-contrib/state/azure/cosmosdb"
	pubsubtests "github.com/dapr/components-contrib/tests/conformance/pubsub"
	statetests "github.com/dapr/components-contrib/tests/conformance/state"
	"github.com/dapr/kit/logger"
)

func TestState(t *testing.T) {
	config, err := statetests.NewTestConfig("azure.cosmosdb", []string{"transaction", "etag", "first-write", "query", "ttl"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	statetests.ConformanceTests(t, map[string]string{
		"url": os.Getenv("COSMOS_ENDPOINT"), "masterKey": os.Getenv("COSMOS_KEY"), "database": "dapr", "collection": "state",
	}, cosmosdb.NewCosmosDBStateStore(logger.NewLogger("dapr")), config)
}

func testPubsub(t *testing.T, name string, component pubsub.PubSub) {
	config, err := pubsubtests.NewTestConfig(name, []string{"bulkpublish", "bulksubscribe"}, map[string]any{
		"testTopicName": name + "-1", "testTopicForBulkSub": name + "-bulk", "testMultiTopic1Name": name + "-2", "testMultiTopic2Name": name + "-3", "checkInOrderProcessing": false,
	})
	if err != nil {
		t.Fatal(err)
	}
	pubsubtests.ConformanceTests(t, map[string]string{"connectionString": os.Getenv("SERVICEBUS_CONNECTION_STRING"), "consumerID": "tests"}, component, config)
}

func TestTopics(t *testing.T) { testPubsub(t, "topic", topics.NewAzureServiceBusTopics(logger.NewLogger("dapr"))) }

func TestQueues(t *testing.T) { testPubsub(t, "queue", queues.NewAzureServiceBusQueues(logger.NewLogger("dapr"))) }
`

var ended = regexp.MustCompile(`--- (PASS|FAIL|SKIP): (\S+)`)

// run runs the tests.
func (m *moduleSuite) run(ctx context.Context, w io.Writer, o *options) (int, error) {
	dir, err := os.MkdirTemp("", m.name+"-*")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := copySDK(ctx, filepath.Join(dir, "sdk")); err != nil {
		return 1, fmt.Errorf("copy the SDK: %w", err)
	}
	if err := patch(filepath.Join(dir, "sdk")); err != nil {
		return 1, fmt.Errorf("patch the copy: %w", err)
	}
	module := filepath.Join(dir, "suite")
	if err := os.Mkdir(module, 0o755); err != nil {
		return 1, err
	}
	for name, text := range map[string]string{
		"go.mod":        "module suite\n\ngo 1.26\n\nrequire " + m.require + "\n\nreplace " + sdkModule + " => ../sdk\n",
		"suite_test.go": cmp.Or(m.program, "package suite\n"),
	} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o644); err != nil {
			return 1, err
		}
	}
	ns, err := startNamespaces(dir)
	if err != nil {
		return 1, err
	}
	defer ns.close()
	account, err := cosmosemu.Start(nil)
	if err != nil {
		return 1, err
	}
	defer func() { _ = account.Close() }()
	if err := account.CreateContainer("dapr", cosmosemu.ContainerProps{ID: "state", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}); err != nil {
		return 1, err
	}
	env := append(ns.env(), "COSMOS_ENDPOINT="+account.Endpoint(), "COSMOS_KEY="+account.Key())
	results, err := (&suite{dir: module, out: w}).goTest(ctx, env, m.args...)
	if err != nil {
		return 1, err
	}
	counts := map[string]int{}
	for t, r := range results {
		for _, line := range ended.FindAllStringSubmatch(r.output.String(), -1) {
			counts[line[1]]++
			if line[1] == "FAIL" {
				fmt.Fprintln(w, "FAIL", line[2])
			}
		}
		if r.action == "fail" && o.verbose {
			fmt.Fprintln(w, t.name, r.output.String())
		}
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", counts["PASS"], counts["FAIL"], counts["SKIP"])
	if counts["FAIL"] > 0 || counts["PASS"] < m.tests {
		return 1, nil
	}
	return 0, nil
}
