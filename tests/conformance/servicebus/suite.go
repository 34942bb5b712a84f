package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// suite runs the copy's tests.
type suite struct {
	dir string
	out io.Writer
}

// test names a top-level test.
type test struct{ pkg, name string }

// result is the result of a test, including its subtests.
type result struct {
	action  string // pass, fail, skip, or "" if the test did not end
	skipped []string
	output  strings.Builder
	seconds float64
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// liveSkips matches the skip messages of live tests.
var liveSkips = regexp.MustCompile("Skipping live test|live-only:")

// liveTests returns the tests that skip, as a whole or in a subtest, if the suite runs
// without a live namespace.
func (s *suite) liveTests(ctx context.Context) (map[test]bool, error) {
	results, err := s.goTest(ctx, append(os.Environ(), "AZURE_RECORD_MODE=playback"), "./...")
	if err != nil {
		return nil, err
	}
	live := make(map[test]bool)
	for t, r := range results {
		if liveSkips.MatchString(r.output.String()) {
			live[t] = true
		}
	}
	if len(live) == 0 {
		return nil, fmt.Errorf("no test says %q: does the copy build?", liveSkips)
	}
	return live, nil
}

func (s *suite) runLive(ctx context.Context, env []string, o *options) (map[test]*result, error) {
	args := []string{"-timeout", "9m"}
	if o.run != "" {
		args = append(args, "-run", o.run)
	}
	if !o.all {
		var skip []string
		for _, e := range exceptions {
			skip = append(skip, e.pattern)
		}
		args = append(args, "-skip", strings.Join(skip, "|"))
	}
	return s.goTest(ctx, env, append(args, "./...")...)
}

// goTest runs go test -json and collects the results of top-level tests. Packages run in
// turn, because the SDK's tests name their queues by the current second.
func (s *suite) goTest(ctx context.Context, env []string, args ...string) (map[test]*result, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-count=1", "-p=1"}, args...)...)
	cmd.Dir, cmd.Stderr = s.dir, os.Stderr
	cmd.Env = slices.Concat(env, []string{"GOFLAGS=-mod=mod", "GOWORK=off"})
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	results := make(map[test]*result)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			if e.Action == "output" && (strings.Contains(e.Output, "FAIL") || strings.Contains(e.Output, "panic")) {
				fmt.Fprint(s.out, e.Output)
			}
			continue
		}
		top, sub, isSub := strings.Cut(e.Test, "/")
		t := test{strings.TrimPrefix(e.Package, sdkModule), top}
		r := results[t]
		if r == nil {
			r = &result{}
			results[t] = r
		}
		switch e.Action {
		case "output":
			r.output.WriteString(e.Output)
		case "pass", "fail", "skip":
			if !isSub {
				r.action, r.seconds = e.Action, e.Elapsed
			} else if e.Action == "skip" {
				r.skipped = append(r.skipped, sub)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	_ = cmd.Wait() // failed tests are in the results
	return results, ctx.Err()
}
