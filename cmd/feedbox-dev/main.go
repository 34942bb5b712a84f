// Command feedbox-dev runs the whole path on one machine with nothing but Go:
// the Cosmos DB and Service Bus emulators, the contacts API, the relay and a demo
// subscriber, in one process. `feedbox-dev emulators` runs the emulators alone.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Environ())
	stop()
	os.Exit(code)
}
