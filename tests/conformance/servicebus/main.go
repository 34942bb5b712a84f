// Command servicebus runs third-party clients against busemu and reports how many of their
// tests pass:
//
//	go run ./tests/conformance/servicebus [-suite go,gocloud,dapr,javascript,python,python-tests,celery,proton,java,jms,rhea] [-run pattern] [-min 117] [-v]
//
// Suite go is the live tests of azservicebus v1.11.0. They talk to a namespace in
// Azure: this program copies the SDK's module from the module cache to a temporary
// directory, patches three files of the copy so that every client is created from a
// connection string and the admin client's requests go to the emulator's HTTP port,
// starts two emulators (the Standard and the Premium tier) and runs the copy's tests.
// The copy is deleted afterwards. The live tests are not listed: they are the tests that
// skip themselves in the suite's playback mode.
//
// Suite gocloud is the conformance tests of gocloud.dev/pubsub/azuresb, with that copy of the SDK. Suite
// dapr is the conformance tests of Dapr's components for Service Bus and for Cosmos DB, the latter with
// cosmosemu.
//
// Suite python-tests has the tests of azure-servicebus 7.15.0 (pythonsuite.go). It runs on
// demand and in make nightly and takes about four minutes.
//
// The other suites are the scenarios of ./scenarios: javascript, python and java through
// the SDKs of those languages, celery through Celery on kombu, jms through Qpid JMS, proton
// and rhea through those AMQP libraries only. With -connection-string, or FEEDBOX_TEST_SERVICEBUS_SCENARIOS, they
// go to that endpoint, which must have the entities of scenarios/Config.json.
//
// It needs the module cache or a module proxy for the SDK's own test dependencies, and
// the registries of npm, Python and Maven. A missing language is reported and is not a
// failure. A run takes about six minutes. The exit code is 1 if fewer live tests pass
// than -min, if a test fails that is not in the list of exceptions, or if a scenario
// fails.
//
// The tests of this package check the wire behaviour that Feedbox depends on, against any
// endpoint (wire_test.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"feedbox/tests/conformance/servicebus/scenarios"
)

type options struct {
	min          int
	run          string
	verbose, all bool
	suites       []string
	connection   string
}

func main() {
	var o options
	flag.IntVar(&o.min, "min", 117, "how many live tests of the Go SDK must pass")
	flag.StringVar(&o.run, "run", "", "run only tests that match this pattern, or scenarios that contain it")
	flag.BoolVar(&o.verbose, "v", false, "print the output of tests that fail")
	flag.BoolVar(&o.all, "all", false, "run the exceptions too")
	flag.StringVar(&o.connection, "connection-string", os.Getenv("FEEDBOX_TEST_SERVICEBUS_SCENARIOS"), "endpoint of the scenarios; default: an emulator of our own")
	suites := flag.String("suite", "go,gocloud,dapr,javascript,python,celery,proton,java,jms,rhea", "what to run")
	flag.Parse()
	o.suites = strings.Split(*suites, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Stdout, &o)
	stop()
	os.Exit(code)
}

// run runs all suites in turn, even if one fails.
func run(ctx context.Context, w io.Writer, o *options) (code int) {
	if slices.Contains(o.suites, "go") {
		var err error
		if code, err = runGo(ctx, w, o); err != nil {
			fmt.Fprintln(w, "conformance:", err)
			code = 1
		}
	}
	for _, m := range moduleSuites {
		if !slices.Contains(o.suites, m.name) {
			continue
		}
		fmt.Fprintf(w, "\n%s:\n", m.title)
		failed, err := m.run(ctx, w, o)
		if err != nil {
			fmt.Fprintln(w, "conformance:", err)
			failed = 1
		}
		code = max(code, failed)
	}
	if slices.Contains(o.suites, "python-tests") {
		fmt.Fprintln(w, "\nazure-servicebus 7.15.0, its own tests:")
		failed, err := runPython(ctx, w, o)
		switch {
		case errors.Is(err, scenarios.ErrNotInstalled):
			fmt.Fprintf(w, "NOT RUN, nothing is known: %v\n", err)
		case err != nil:
			fmt.Fprintln(w, "conformance:", err)
			failed = 1
		}
		code = max(code, failed)
	}
	for _, l := range scenarios.Languages {
		if !slices.Contains(o.suites, l.Name) {
			continue
		}
		fmt.Fprintf(w, "\n%s, scenarios:\n", l.SDK)
		passed, err := l.Run(ctx, w, o.connection, o.run)
		switch {
		case errors.Is(err, scenarios.ErrNotInstalled):
			fmt.Fprintf(w, "NOT RUN, nothing is known of %s: %v\n", l.SDK, err)
		case err != nil:
			fmt.Fprintln(w, "conformance:", err)
			code = 1
		case !passed:
			code = 1
		}
	}
	return code
}

// runGo runs the Go SDK's own live tests.
func runGo(ctx context.Context, w io.Writer, o *options) (int, error) {
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
