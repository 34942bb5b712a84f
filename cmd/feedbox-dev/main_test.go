package main

import (
	"os"
	"testing"
)

// TestMain lets the test binary be what feedbox-dev is for the playground: the program of
// its relays.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == relayCommandName {
		main()
		return
	}
	os.Exit(m.Run())
}
