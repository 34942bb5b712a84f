// Command feedbox-dev runs the whole path on one machine with nothing but Go:
// the Cosmos DB and Service Bus emulators, the contacts API, the relay and a demo
// subscriber, in one process. `feedbox-dev emulators` runs the emulators alone;
// load, dump and verify put the promises of the outbox to the test.
package main

import (
	"context"
	"fmt"
	"os"

	"feedbox/infrastructure/wiring"
)

func main() {
	ctx, stop := wiring.UntilSignal(context.Background(), func() {
		_, _ = fmt.Fprintln(os.Stderr, "feedbox-dev: told to end twice, not waiting any longer")
		os.Exit(exitFailure)
	})
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Environ())
	stop()
	os.Exit(code)
}
