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
	"regexp"
	"slices"
	"strings"
	"time"
)

// verdict is what became of a mutant.
type verdict string

const (
	killed          verdict = "killed"
	survived        verdict = "SURVIVED"
	doesNotApply    verdict = "DOES NOT APPLY"
	doesNotCompile  verdict = "DOES NOT COMPILE"
	baselineFails   verdict = "BASELINE FAILS"
	runnerIsAtFault verdict = "COULD NOT RUN"
	notRun          verdict = "not run"
)

// result is one row of the table.
type result struct {
	mutant  *mutant
	verdict verdict
	tests   []string // that failed
	stuck   bool     // the tests did not end in time
	detail  string   // output
	took    time.Duration
	before  *row // of an earlier run, in place of this one
}

// by names the test that failed, or how the run ended.
func (r *result) by() string {
	switch {
	case r.verdict != killed:
		return ""
	case len(r.tests) == 0 && r.stuck:
		return "(did not end in time)"
	case len(r.tests) == 0:
		return "(the test program ended)"
	}
	return strings.Join(r.tests, ", ")
}

// attempt runs the tests named for a mutant until one of them fails.
func attempt(ctx context.Context, tree string, m *mutant, o options) result {
	began := time.Now()
	r := result{mutant: m, verdict: survived}
	defer func() { r.took = time.Since(began) }()
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		r.verdict, r.detail = runnerIsAtFault, err.Error()
		return r
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(ctx, tree, dir)
	if err != nil {
		r.verdict, r.detail = doesNotApply, err.Error()
		return r
	}
	for _, t := range m.kills {
		run := goTest(ctx, tree, t, overlay, o)
		r.detail += run.output
		switch {
		case run.built && run.failed:
			r.verdict, r.tests, r.stuck = killed, run.failing, run.stuck
		case !run.built:
			r.verdict = doesNotCompile
		case run.err != nil:
			r.verdict, r.detail = runnerIsAtFault, run.err.Error()
		default:
			continue
		}
		break
	}
	r.took = time.Since(began)
	return r
}

// baseline runs the tests of all mutants on the tree as it is, package by package,
// and returns why a mutant's tests prove nothing: they fail, or there are none.
func baseline(ctx context.Context, tree string, chosen []*mutant, o options) (map[*mutant]string, error) {
	byPackage := map[string]target{}
	var order []string
	for _, m := range chosen {
		for _, t := range m.kills {
			key := strings.Join(append(slices.Clone(t.flags), t.pkg), " ")
			all, ok := byPackage[key]
			if !ok {
				all, order = target{flags: t.flags, pkg: t.pkg, tests: t.tests}, append(order, key)
			} else if !slices.Contains(strings.Split(all.tests, "|"), t.tests) {
				all.tests += "|" + t.tests
			}
			byPackage[key] = all
		}
	}
	broken := map[*mutant]string{}
	for _, key := range order {
		began := time.Now()
		run := goTest(ctx, tree, byPackage[key], "", o)
		if run.err != nil {
			return nil, fmt.Errorf("%s: %w", key, run.err)
		}
		fmt.Fprintf(os.Stderr, "%-18s %-44s %5.1fs  %d tests\n", "baseline", key, time.Since(began).Seconds(), len(run.ran))
		for _, m := range chosen {
			for _, t := range m.kills {
				if strings.Join(append(slices.Clone(t.flags), t.pkg), " ") == key && broken[m] == "" {
					broken[m] = run.uselessFor(t)
				}
			}
		}
	}
	return broken, nil
}

// testRun is one call of go test.
type testRun struct {
	built, failed, stuck bool
	ran, failing         []string // top-level tests
	output               string
	err                  error // go test could not be run
}

// uselessFor says why this run without a mutant shows nothing about t.
func (r *testRun) uselessFor(t target) string {
	if !r.built {
		return "does not build without the mutant:\n" + r.output
	}
	for pattern := range strings.SplitSeq(t.tests, "|") {
		name, _, _ := strings.Cut(pattern, "/")
		matches := regexp.MustCompile(name).MatchString
		if !slices.ContainsFunc(r.ran, matches) {
			return fmt.Sprintf("%s: no test matches %s", t.pkg, pattern)
		}
		if slices.ContainsFunc(r.failing, matches) {
			return fmt.Sprintf("%s: %s fails without the mutant:\n%s", t.pkg, pattern, r.output)
		}
	}
	if r.failed && len(r.failing) == 0 {
		return "fails without the mutant:\n" + r.output
	}
	return ""
}

// goTest runs a target and reads the events of go test -json. With an overlay the
// run ends at the first failure. GOFLAGS carries the overlay, so that a binary
// that a test builds is mutated as well.
func goTest(ctx context.Context, tree string, t target, overlay string, o options) testRun {
	timeout, flags := 5*o.timeout, "-trimpath"
	args := []string{"test", "-json", "-vet=off", "-count=1"}
	if overlay != "" {
		timeout, flags = o.timeout, flags+" -overlay="+overlay
		args = append(args, "-failfast")
	}
	args = append(append(args, t.flags...), fmt.Sprintf("-timeout=%s", timeout), "-run", t.tests, t.pkg)
	ctx, cancel := context.WithTimeout(ctx, timeout+time.Minute) // to build
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "GOFLAGS="+flags)
	cmd.WaitDelay = 10 * time.Second
	text, err := cmd.CombinedOutput()
	run := readEvents(text)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		run.err = err
	}
	run.failed = err != nil
	return run
}

// readEvents collects what go test -json says.
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
		run.stuck = run.stuck || strings.Contains(event.Output, "panic: test timed out")
		if event.Test == "" || strings.Contains(event.Test, "/") {
			continue
		}
		switch event.Action {
		case "run":
			run.ran = append(run.ran, event.Test)
		case "fail":
			run.failing = append(run.failing, event.Test)
		}
	}
	run.output = out.String()
	return run
}
