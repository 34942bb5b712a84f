// Command feedbox is the production binary: the contacts API, the relay, and the commands
// for their operators. `feedbox help` lists them.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"feedbox/infrastructure/process/console"
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

// program holds the streams and the environment of a command line.
type program struct {
	in          io.Reader
	out, errOut io.Writer
	environ     []string // NAME=value
	style       console.Style
	consumer    string // whose parked events a command acts on; "" for the relay's
	container   string // of those of the relay, on which a command acts; "" for the first one
	unwritten   error  // of a line of say
}

// run executes one command line and returns its exit code; see exitCode.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer, environ []string) int {
	p := &program{in: in, out: out, errOut: errOut, environ: environ, style: console.NewStyle(out, console.NoColour(environ))}
	root := group("feedbox", "Contacts with a transactional outbox on Azure Cosmos DB and Service Bus",
		p.apiCommand(), p.relayCommand(), p.pushCommand(), p.feedCommand(), p.ofContainer(p.consoleCommand()),
		p.ofContainer(p.lagCommand()), p.ofContainer(p.eventsCommand()), p.ofContainer(p.leasesCommand()), p.ofContainer(p.parkedCommand()), p.deadLettersCommand(), p.ofContainer(p.replayCommand()),
		p.ofContainer(p.doctorCommand()), p.planCommand(), p.configCommand(), p.migrateCommand(), p.openAPICommand(),
	)
	root.Long = `Contacts with a transactional outbox on Azure Cosmos DB and Service Bus.

Everything is configured by FEEDBOX_ environment variables: feedbox config print.
Exit codes: 0 ok, 1 failure, 2 wrong usage or configuration, 3 a promise of the
outbox is broken.`
	root.Version = console.Version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(usage)
	cmd, err := root.ExecuteContextC(ctx)
	if err = cmp.Or(err, p.unwritten); err != nil {
		printError(errOut, cmd, err)
	}
	return exitCode(err)
}
