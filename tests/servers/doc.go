// Package servers runs servers of others for tests: each in a folder of its own, on loopback,
// with the durability that production has. A test that needs one that is not installed is
// skipped, and says what to install.
package servers
