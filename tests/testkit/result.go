package testkit

import (
	"strings"
	"testing"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/record"
)

// Result is what a fault test found.
type Result = record.Result

// Record writes r down when the test ends (record.Write).
func Record(t testing.TB, r Result) {
	t.Helper()
	record.Write(t, r)
}

// Judge verifies a run, fails the test for each breach of a promise and counts the
// breaches in r.
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
