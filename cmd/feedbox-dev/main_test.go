package main

import (
	"os"
	"testing"
)

// TestMain lets the test binary run as a relay, because the playground starts its own binary
// for its relays.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == relayCommandName {
		main()
		return
	}
	os.Exit(m.Run())
}
