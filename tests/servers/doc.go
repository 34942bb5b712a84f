// Package servers starts servers that we did not write, for tests: in a folder of the test's
// own, on loopback, as root or not. A test whose server is not installed is skipped, and
// says what to install.
package servers
