package parkedtest_test

import (
	"testing"

	"feedbox/application/relay/parkedtest"
)

func TestMemory(t *testing.T) {
	parkedtest.Run(t, func(*testing.T) parkedtest.Store { return parkedtest.NewMemory() })
}
