package testkit

import (
	"strings"
	"testing"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/record"
)

// Result is the result of a fault test.
type Result = record.Result

// Record stores r when the test ends (record.Write).
func Record(t testing.TB, r Result) {
	t.Helper()
	record.Write(t, r)
}

// Judge verifies a run, fails the test for each violation and counts the violations in r.
func Judge(t testing.TB, run *verify.Run, r *Result) {
	t.Helper()
	t.Log(run.Summary())
	for _, breach := range run.Verify() {
		t.Error(breach)
		switch {
		case strings.HasPrefix(breach, "I2"):
			r.Lost++
		case strings.HasPrefix(breach, "I3"):
			r.OrderViolations++
		case strings.HasPrefix(breach, "I4"):
			r.DuplicatesSeen++
		}
	}
}
