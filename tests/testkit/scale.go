package testkit

import (
	"testing"

	"feedbox/tests/testenv"
)

// Scale returns the fraction of the full counts that fault tests run: 1 in `make nightly`, 0.05 in
// .ci/run, otherwise 0.01. FEEDBOX_FAULT_SCALE sets it.
func Scale(t testing.TB) float64 {
	t.Helper()
	return testenv.Share(t, "FEEDBOX_FAULT_SCALE", 0.01)
}

// Count returns full at the current [Scale], at least 1.
func Count(t testing.TB, full int) int {
	t.Helper()
	return max(1, int(float64(full)*Scale(t)))
}

// Seed returns the seed of a test's random choices: FEEDBOX_SEED, or the given default. It is logged,
// so that a failure can be repeated.
func Seed(t testing.TB, otherwise uint64) uint64 {
	t.Helper()
	seed := testenv.Seed(t, "FEEDBOX_SEED", otherwise)
	t.Logf("seed %d (FEEDBOX_SEED=%d repeats it)", seed, seed)
	return seed
}
