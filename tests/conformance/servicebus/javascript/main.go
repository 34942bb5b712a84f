// Command javascript runs scenarios of the JavaScript SDK against busemu.
//
//	go run ./tests/conformance/servicebus/javascript [scenario]
//
// It installs @azure/service-bus from npm into a temporary directory (pinned in
// package.json), starts an emulator with the entities the scenarios use and runs
// suite.mjs in node. Without node and npm it says so, loudly, and exits 3.
package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"feedbox/infrastructure/emulator/busemu"
)

//go:embed package.json suite.mjs
var files embed.FS

const exitNoNode = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "javascript:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return exitNoNode, fmt.Errorf("NOT RUN: %s is not installed, so nothing is known of the JavaScript SDK", tool)
		}
	}
	dir, err := os.MkdirTemp("", "service-bus-js-*")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, name := range []string{"package.json", "suite.mjs"} {
		b, err := files.ReadFile(name)
		if err != nil {
			return 1, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return 1, err
		}
	}
	install := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error")
	install.Dir, install.Stderr = dir, os.Stderr
	if err := install.Run(); err != nil {
		return 1, fmt.Errorf("npm install: %w", err)
	}
	srv, err := busemu.Start(&busemu.Options{Topology: topology()})
	if err != nil {
		return 1, err
	}
	defer func() { _ = srv.Close() }()
	node := exec.CommandContext(ctx, "node", append([]string{"suite.mjs"}, args...)...)
	node.Dir, node.Stdout, node.Stderr = dir, os.Stdout, os.Stderr
	node.Env = append(os.Environ(), "SERVICEBUS_CONNECTION_STRING="+srv.ConnectionString())
	if err := node.Run(); err != nil {
		return 1, err
	}
	return 0, nil
}

// topology has the entities of the scenarios.
func topology() *busemu.Topology {
	t := &busemu.Topology{Topics: []busemu.Topic{{Name: "topic", Subscriptions: []busemu.Subscription{{Name: "sub"}}}}}
	for _, name := range []string{"sessions", "sessions-next", "sessions-state", "stream"} {
		t.Queues = append(t.Queues, busemu.Queue{Name: name, QueueProperties: busemu.QueueProperties{RequiresSession: true}})
	}
	for _, name := range []string{"drain", "delete", "peek", "abandon", "dead", "schedule", "defer", "locks"} {
		t.Queues = append(t.Queues, busemu.Queue{Name: name})
	}
	t.Queues = append(t.Queues,
		busemu.Queue{Name: "dedupe", QueueProperties: busemu.QueueProperties{RequiresDuplicateDetection: true, DuplicateDetectionWindow: time.Minute}},
		busemu.Queue{Name: "maxdelivery", QueueProperties: busemu.QueueProperties{MaxDeliveryCount: 3}},
	)
	return t
}
