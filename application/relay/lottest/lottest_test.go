package lottest_test

import (
	"testing"

	"feedbox/application/relay/lottest"
)

func TestMemory(t *testing.T) {
	lottest.Run(t, func(*testing.T) lottest.Lot { return lottest.NewMemory() })
}
