// Package e2e tests the real binaries end to end, from HTTP to Service Bus, with kill -9 in between.
package e2e

import (
	"testing"

	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
