package testkit

import (
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
	report := run.Report()
	for _, breach := range report.Lines() {
		t.Error(breach)
	}
	r.Lost += int64(report.Broken["I2"])
	r.OrderViolations += int64(report.Broken["I3"])
	r.DuplicatesSeen += int64(report.Broken["I4"])
}
