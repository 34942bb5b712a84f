package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// verdict is the outcome of a mutant.
type verdict string

const (
	killed          verdict = "killed"
	survived        verdict = "SURVIVED"
	unsteady        verdict = "KILLED ONCE, NOT TWICE"
	panicked        verdict = "PANICS OR EXITS"            // before the tests end
	hung            verdict = "DOES NOT END"               // within the timeout
	raced           verdict = "DATA RACE"                  // proves nothing about the behaviour
	unnamed         verdict = "FAILS WITHOUT A NAMED TEST" // go test fails, but no named test does
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
	tests   []string // whose assertions failed, twice
	detail  string   // output
	took    time.Duration
}

// by returns the names of the tests that killed the mutant.
func (r *result) by() string {
	if r.verdict != killed {
		return ""
	}
	return strings.Join(r.tests, ", ")
}

// attempt runs the kills lines of a mutant until an assertion of a named test fails. It
// then runs that line a second time, because a flaky test proves nothing.
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
	overlay, err := m.overlay(tree, dir)
	if err != nil {
		r.verdict, r.detail = doesNotApply, err.Error()
		return r
	}
	for _, t := range m.kills {
		test, failed := build(ctx, tree, t, overlay, dir, o)
		if failed != nil {
			r.verdict, r.detail = failed.verdict(), r.detail+failed.output
			continue
		}
		run := test.run(ctx)
		r.detail += run.output
		v := run.verdict()
		if v == killed {
			again := test.run(ctx)
			if again.verdict() != killed {
				v, r.detail = unsteady, r.detail+"\nthe second time ("+string(again.verdict())+"):\n"+again.output
			}
		}
		if v != survived {
			r.verdict = v
		}
		if v == killed {
			r.tests = run.failing
			break
		}
	}
	r.took = time.Since(began)
	return r
}

// baseline runs the tests of all mutants on the unchanged tree, one package at a time.
// It returns the mutants whose tests prove nothing, with the reason: a test fails without
// the mutant, or does not exist.
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
		run, err := baselineOf(ctx, tree, byPackage[key], o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
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

func baselineOf(ctx context.Context, tree string, t target, o options) (testRun, error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return testRun{}, err
	}
	defer os.RemoveAll(dir)
	test, failed := build(ctx, tree, t, "", dir, o)
	if failed != nil {
		return *failed, failed.err
	}
	run := test.run(ctx)
	return run, run.err
}
