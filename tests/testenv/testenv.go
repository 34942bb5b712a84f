// Package testenv reads the variables that say how much a test does: counts, seeds,
// shares. A value that is none, or none that a run can prove anything with, ends the test
// with words; without that a typing error would pass as a green run of nothing.
package testenv

import (
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"
)

// Full reports whether tests run at their full size, with FEEDBOX_TEST_FULL=yes, as in .ci/run. Otherwise
// slow tests take a sample, because go test ./... has three minutes.
func Full(t testing.TB) bool {
	t.Helper()
	return read(t, "FEEDBOX_TEST_FULL", false, "yes or no", func(text string) (bool, bool) {
		return text == "yes", text == "yes" || text == "no"
	})
}

// Sample returns sample, or all if tests run at their full size.
func Sample(t testing.TB, sample, all int) int {
	t.Helper()
	if Full(t) {
		return all
	}
	return sample
}

// Count is the variable name: a whole number of 1 or more. It is otherwise if the
// variable is not set or empty.
func Count(t testing.TB, name string, otherwise int) int {
	t.Helper()
	return read(t, name, otherwise, "a whole number of 1 or more", func(text string) (int, bool) {
		n, err := strconv.Atoi(text)
		return n, err == nil && n >= 1
	})
}

// Seed is the variable name: a whole number of 0 or more. It is otherwise if the
// variable is not set or empty.
func Seed(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	return read(t, name, otherwise, "a whole number of 0 or more", func(text string) (uint64, bool) {
		n, err := strconv.ParseUint(text, 10, 64)
		return n, err == nil
	})
}

// Random returns a source of random choices and logs its seed, which is FEEDBOX_TEST_SEED, or 1 because a test
// must not fail by chance.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := Seed(t, "FEEDBOX_TEST_SEED", 1)
	t.Logf("FEEDBOX_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// Share is the variable name: a number above 0 and up to 1. It is otherwise if the
// variable is not set or empty.
func Share(t testing.TB, name string, otherwise float64) float64 {
	t.Helper()
	return read(t, name, otherwise, "a number above 0 and up to 1", func(text string) (float64, bool) {
		n, err := strconv.ParseFloat(text, 64)
		return n, err == nil && n > 0 && n <= 1
	})
}

// Duration is the variable name: 0 or a time with its unit, such as 90s. It is otherwise
// if the variable is not set or empty.
func Duration(t testing.TB, name string, otherwise time.Duration) time.Duration {
	t.Helper()
	return read(t, name, otherwise, "0 or a time such as 90s", func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d >= 0
	})
}

func read[T any](t testing.TB, name string, otherwise T, wanted string, parse func(string) (T, bool)) T {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, ok := parse(text)
	if !ok {
		t.Fatalf("%s=%q: %s is needed", name, text, wanted)
	}
	return value
}

// Main runs the tests of a package that simulates. They allocate much and keep little, so
// collecting garbage less often saves up to a third of their processor time. GOGC overrides it.
func Main(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(1 << 30) // beyond it garbage is collected as often as need be
	}
	os.Exit(m.Run())
}
