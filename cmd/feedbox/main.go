// Command feedbox is the production binary: the contacts API, the relay, and the commands
// for their operators. `feedbox help` lists them.
package main

import (
	"context"
	"fmt"
	"os"

	"feedbox/infrastructure/wiring"
)

func main() {
	ctx, stop := wiring.UntilSignal(context.Background(), func() {
		_, _ = fmt.Fprintln(os.Stderr, "feedbox: second signal received, exiting at once")
		os.Exit(exitFailure)
	})
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
	stop()
	os.Exit(code)
}
