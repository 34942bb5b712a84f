// Package servers starts third-party servers for tests: in a folder of the test, on
// loopback, with or without root. If a server is not installed, the test is skipped with
// a message that says what to install.
package servers

// TB has the methods of testing.TB that the servers need, so that programs can implement it.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
	TempDir() string
	Cleanup(end func())
}
