//go:build faults

package brokers

import (
	"testing"

	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
