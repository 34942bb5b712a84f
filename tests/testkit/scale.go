package testkit

import (
	"os"
	"strconv"
	"testing"
)

// Scale is the share of the full counts that fault tests run at: 1 in
// `make nightly`, 0.05 in .ci/run, 0.01 otherwise. FEEDBOX_FAULT_SCALE sets it.
func Scale(t testing.TB) float64 {
	t.Helper()
	text := os.Getenv("FEEDBOX_FAULT_SCALE")
	if text == "" {
		return 0.01
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || scale <= 0 || scale > 1 {
		t.Fatalf("FEEDBOX_FAULT_SCALE=%q: a number above 0 and up to 1 is needed", text)
	}
	return scale
}

// Count is full at the present [Scale], at least 1.
func Count(t testing.TB, full int) int {
	t.Helper()
	return max(1, int(float64(full)*Scale(t)))
}

// Seed is the seed of a test's random choices: FEEDBOX_SEED, or otherwise the one
// given. It is logged, so that a failure names it.
func Seed(t testing.TB, otherwise uint64) uint64 {
	t.Helper()
	seed := otherwise
	if text := os.Getenv("FEEDBOX_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("FEEDBOX_SEED=%q: a whole number is needed", text)
		}
		seed = n
	}
	t.Logf("seed %d (FEEDBOX_SEED=%d repeats it)", seed, seed)
	return seed
}
