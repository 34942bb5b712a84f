// Command feedbox-dev runs the Cosmos DB and Service Bus emulators, the contacts API, the
// relay and a demo subscriber in one process. `feedbox-dev emulators` runs the emulators
// only. The subcommands load, dump and verify test the promises of the outbox.
package main

import (
	"context"
	"fmt"
	"os"

	"feedbox/infrastructure/wiring"
)

func main() {
	ctx, stop := wiring.UntilSignal(context.Background(), func() {
		_, _ = fmt.Fprintln(os.Stderr, "feedbox-dev: second signal received, exiting at once")
		os.Exit(exitFailure)
	})
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Environ())
	stop()
	os.Exit(code)
}
