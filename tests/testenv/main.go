package testenv

import (
	"os"
	"runtime/debug"
	"testing"
)

// Main runs the tests of a package that simulates. They allocate much and keep little, so
// collecting garbage less often saves up to a third of their processor time. GOGC overrides it.
func Main(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(1 << 30) // beyond it garbage is collected as often as need be
	}
	os.Exit(m.Run())
}
