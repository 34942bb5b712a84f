// Package servers starts servers that we did not write, for tests: in a folder of the test's
// own, on loopback, as root or not. A test whose server is not installed is skipped, and
// says what to install.
package servers

// TB is what of a testing.TB the servers need; benchmarks that are no tests have one, too.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
	TempDir() string
	Cleanup(end func())
}
