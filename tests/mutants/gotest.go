package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// testRun is the result of one call of go test.
type testRun struct {
	built, failed bool
	stuck         bool     // did not end within the timeout
	finished      bool     // the test program ended without panic, signal or os.Exit
	racing        bool     // the race detector reported a race
	ran, failing  []string // top-level tests; failing: those that ended and failed
	output        string
	err           error // go test could not be run
}

// verdict returns the outcome of a run with a mutant. Only a failed assertion is a kill,
// because a hang, a panic or a failed build can have any cause.
func (r *testRun) verdict() verdict {
	switch {
	case r.err != nil:
		return runnerIsAtFault
	case !r.built:
		return doesNotCompile
	case r.stuck:
		return hung
	case !r.failed:
		return survived
	case !r.finished:
		return panicked
	case len(r.failing) == 0:
		return unnamed
	case r.racing:
		return raced
	}
	return killed
}

// uselessFor returns why t proves nothing, given this run without a mutant, or "".
func (r *testRun) uselessFor(t target) string {
	if !r.built {
		return "does not build without the mutant:\n" + r.output
	}
	for pattern := range strings.SplitSeq(t.tests, "|") {
		name, _, _ := strings.Cut(pattern, "/")
		matches := func(test string) bool { return test == name }
		if !slices.ContainsFunc(r.ran, matches) {
			return fmt.Sprintf("%s: no test matches %s", t.pkg, pattern)
		}
		if slices.ContainsFunc(r.failing, matches) {
			return fmt.Sprintf("%s: %s fails without the mutant:\n%s", t.pkg, pattern, r.output)
		}
	}
	if r.failed && len(r.failing) == 0 || r.racing {
		return "fails without the mutant:\n" + r.output
	}
	return ""
}

// goTest runs a target. With an overlay the run ends at the first failure. The overlay is
// set in GOFLAGS, so that it also applies to programs that a test builds.
func goTest(ctx context.Context, tree string, t target, overlay string, o options) testRun {
	timeout, flags := 5*o.timeout, "-trimpath"
	args := []string{"test", "-json", "-vet=off", "-count=1"}
	if overlay != "" {
		timeout, flags = o.timeout, flags+" -overlay="+overlay
		args = append(args, "-failfast")
	}
	args = append(append(args, t.flags...), fmt.Sprintf("-timeout=%s", timeout), "-run", t.exactly(), t.pkg)
	ctx, cancel := context.WithTimeout(ctx, timeout+time.Minute) // for the build
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = tree
	// As many seeds as in CI, because a mistake may show in one seed only.
	cmd.Env = append(os.Environ(), "GOFLAGS="+flags, "CHANGEFEED_SEEDS=60", "FAILOVER_CYCLES=2")
	cmd.WaitDelay = 10 * time.Second
	text, err := cmd.CombinedOutput()
	run := readEvents(text)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		run.err = err
	}
	run.failed = err != nil
	run.stuck = run.stuck || ctx.Err() != nil
	return run
}

// readEvents parses the events of go test -json.
func readEvents(text []byte) testRun {
	run := testRun{built: true}
	var out strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var event struct{ Action, Test, Output, FailedBuild string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			out.WriteString(lines.Text() + "\n")
			continue
		}
		out.WriteString(event.Output)
		run.built = run.built && event.Action != "build-fail" && event.FailedBuild == "" && !strings.Contains(event.Output, "[setup failed]")
		run.stuck = run.stuck || strings.HasPrefix(event.Output, "panic: test timed out")
		run.racing = run.racing || strings.HasPrefix(event.Output, "WARNING: DATA RACE")
		run.finished = run.finished || event.Test == "" && (event.Output == "PASS\n" || event.Output == "FAIL\n")
		if event.Test == "" || strings.Contains(event.Test, "/") {
			continue
		}
		// The action "fail" is no proof that a test ended, because test2json also reports
		// it for a test that a panic or an exit interrupted. Only a test that ended has
		// this output line.
		switch {
		case event.Action == "run":
			run.ran = append(run.ran, event.Test)
		case strings.HasPrefix(event.Output, "--- FAIL: "+event.Test+" "):
			run.failing = append(run.failing, event.Test)
		}
	}
	run.output = out.String()
	return run
}
