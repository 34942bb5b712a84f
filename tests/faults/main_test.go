package faults

import (
	"testing"

	"feedbox/tests/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
