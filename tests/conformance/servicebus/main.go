// Command servicebus runs the live tests of azservicebus v1.11.0 against busemu
// and says how many pass.
//
//	go run ./tests/conformance/servicebus [-min 116] [-run regexp] [-v]
//
// The SDK's tests talk to a namespace in Azure. This program copies the SDK's
// module from the module cache to a temporary directory, patches three files of
// the copy so that every client is made from a connection string and the admin
// client's requests go to the emulator's HTTP port, starts two emulators (the
// Standard and the Premium tier) and runs the copy's tests. Nothing of the SDK
// is kept.
//
// Which tests are live is found out, not listed: they are those that skip
// themselves when the suite runs in its playback mode.
//
// It needs the module cache or a module proxy for the SDK's own test
// dependencies, and takes about two minutes. The exit code is 1 if fewer live
// tests pass than -min, or if one fails that is not in the list of exceptions.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	var o options
	flag.IntVar(&o.min, "min", 116, "how many live tests must pass")
	flag.StringVar(&o.run, "run", "", "run only live tests that match this pattern")
	flag.BoolVar(&o.verbose, "v", false, "print the output of tests that fail")
	flag.BoolVar(&o.all, "all", false, "run the exceptions too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, os.Stdout, &o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		code = 1
	}
	os.Exit(code)
}

type options struct {
	min          int
	run          string
	verbose, all bool
}

func run(ctx context.Context, w io.Writer, o *options) (int, error) {
	dir, err := os.MkdirTemp("", "azservicebus-*")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := copySDK(ctx, dir); err != nil {
		return 1, fmt.Errorf("copy the SDK: %w", err)
	}
	if err := patch(dir); err != nil {
		return 1, fmt.Errorf("patch the copy: %w", err)
	}
	suite := &suite{dir: dir, out: w}
	live, err := suite.liveTests(ctx)
	if err != nil {
		return 1, fmt.Errorf("find the live tests: %w", err)
	}
	fmt.Fprintf(w, "%d live tests in azservicebus %s\n", len(live), sdkVersion)
	ns, err := startNamespaces(dir)
	if err != nil {
		return 1, err
	}
	defer ns.close()
	results, err := suite.runLive(ctx, ns.env(), o)
	if err != nil {
		return 1, err
	}
	return report(w, live, results, o), nil
}
