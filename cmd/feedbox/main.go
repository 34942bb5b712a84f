// Command feedbox is the production binary: the contacts API and the relay, and the
// commands by which people see and steer them; one image. `feedbox help` lists them.
package main

import (
	"context"
	"fmt"
	"os"

	"feedbox/infrastructure/wiring"
)

func main() {
	ctx, stop := wiring.UntilSignal(context.Background(), func() {
		_, _ = fmt.Fprintln(os.Stderr, "feedbox: told to end twice, not waiting any longer")
		os.Exit(exitFailure)
	})
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
	stop()
	os.Exit(code)
}
