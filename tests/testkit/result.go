package testkit

import (
	"testing"

	"feedbox/tests/record"
)

// Result is what a fault test found.
type Result = record.Result

// Record writes r down when the test ends (record.Write).
func Record(t testing.TB, r Result) {
	t.Helper()
	record.Write(t, r)
}
