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
	"path"
	"path/filepath"
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

// program is the compiled test of a target, with the name that go test gives it, because programs print theirs. It is
// built once and run twice, because go test would link it twice.
type program struct {
	file, dir string // dir is the folder of the package, where go test runs it
	target    target
	env       []string
	timeout   time.Duration
	failfast  bool
}

// build compiles the test of a target to the folder dir. If that fails, it returns the run that says so.
// With an overlay a run ends at the first failure. The overlay is set in GOFLAGS, so that it also applies
// to programs that a test builds.
func build(ctx context.Context, tree string, t target, overlay, dir string, o options) (*program, *testRun) {
	p := &program{
		file: filepath.Join(dir, path.Base(t.pkg)+".test"), dir: filepath.Join(tree, t.pkg), target: t,
		timeout: 5 * o.timeout, failfast: overlay != "",
	}
	flags := "-trimpath"
	if overlay != "" {
		p.timeout, flags = o.timeout, flags+" -overlay="+overlay
	}
	// As much as in CI, because a mistake may show in one seed only.
	p.env = append(os.Environ(), "GOFLAGS="+flags, "FEEDBOX_TEST_FULL=yes")
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	// Without symbols it links as fast as for go test.
	args := append([]string{"test", "-c", "-o", p.file, "-vet=off", "-ldflags=-s -w"}, t.flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, t.pkg)...)
	// The compiler spends a quarter of its time on garbage collection with the default, and memory suffices.
	cmd.Dir, cmd.Env, cmd.WaitDelay = tree, append(slices.Clone(p.env), "GOGC=800"), 10*time.Second
	text, err := cmd.CombinedOutput()
	if err == nil {
		_, err = os.Stat(p.file) // missing if the package has no tests
	} else if _, ok := errors.AsType[*exec.ExitError](err); !ok || ctx.Err() != nil {
		return nil, &testRun{err: fmt.Errorf("build: %w", err), output: string(text)}
	}
	if err != nil {
		return nil, &testRun{failed: true, output: string(text)}
	}
	return p, nil
}

// run runs the tests once, as go test -json would.
func (p *program) run(ctx context.Context) testRun {
	ctx, cancel := context.WithTimeout(ctx, p.timeout+10*time.Second)
	defer cancel()
	args := []string{"tool", "test2json", p.file, "-test.v=test2json", "-test.paniconexit0", "-test.timeout=" + p.timeout.String(), "-test.run=" + p.target.exactly()}
	if p.failfast {
		args = append(args, "-test.failfast")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.dir, append(slices.Clone(p.env), "PWD="+p.dir), 10*time.Second
	text, err := cmd.CombinedOutput()
	run := readEvents(text)
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
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
