// Package e2e runs the real binaries: HTTP in, Service Bus out, kill -9 between.
package e2e

import (
	"testing"

	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// anyPorts makes feedbox-dev take free ports, so that tests run side by side.
func anyPorts(more ...string) []string {
	return append([]string{"--api", "127.0.0.1:0", "--ops", "127.0.0.1:0", "--page", "127.0.0.1:0", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0"}, more...)
}

// emulatorPorts is anyPorts for `feedbox-dev emulators`.
func emulatorPorts(more ...string) []string {
	return append([]string{"emulators", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0"}, more...)
}
