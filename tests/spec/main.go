// Command spec checks the TLA+ specification of the protocol with TLC; README.md explains both.
//
//	go run ./tests/spec            the bounded part that CI runs
//	go run ./tests/spec -nightly   all configurations
//	go run ./tests/spec -mutants   each change of mutants.txt must violate the rule it names
//	go run ./tests/spec -traces 3  recorded runs of the simulations must be behaviors of the modules
//
// It prints states, depth and time of each configuration, and fails if a result is not the
// expected one. It needs Java and Maven; without them it reports that and checks nothing.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("spec", flag.ContinueOnError)
	nightly := flags.Bool("nightly", false, "check the large configurations, too")
	mutate := flags.Bool("mutants", false, "check the mutants only")
	only := flags.String("only", "", "check what matches this regexp only")
	verbose := flags.Bool("v", false, "print the behavior of each violation")
	traces := flags.Int("traces", 0, "only record this number of runs of each simulation and compare them with the modules; with -mutants: runs of mutants of the code")
	system := flags.Bool("system", false, "with -traces: record the simulation of the whole system and the crash tests, too")
	seed := flags.Int("seed", 1, "the first of them")
	folder := flags.String("recordings", "", "only compare the recordings in this folder with the modules")
	if flags.Parse(args) != nil {
		return 2
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			fmt.Printf("SKIPPED: the specification was not checked, because %s is not installed\n0 passed, 0 failed, 1 skipped\n", tool)
			return 0
		}
	}
	checks, err := selectChecks(*nightly, *mutate)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	checks = slices.DeleteFunc(checks, func(c check) bool { return !match.MatchString(c.name) })
	checker, err := fetchTLC(ctx, filepath.Join(".cache", "spec"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	switch {
	case *folder != "":
		return checker.compare(ctx, *folder, *verbose)
	case *traces > 0 && *mutate:
		return checker.codeMutants(ctx, match)
	case *traces > 0:
		return checker.traces(ctx, *seed, *traces, *system, *verbose)
	}
	return checker.all(ctx, checks, *verbose)
}

// check is one run of TLC and its expected result.
type check struct {
	name   string
	model  model
	source string // of the module
	expect string // the rule that must be violated; "" = none
}

func selectChecks(nightly, mutate bool) (checks []check, err error) {
	sources := map[string]string{}
	for _, m := range models {
		if sources[m.module] == "" {
			text, err := os.ReadFile(filepath.Join("tests", "spec", m.module+".tla"))
			if err != nil {
				return nil, err
			}
			sources[m.module] = string(text)
		}
		if !mutate && (nightly || !m.nightly) {
			checks = append(checks, check{m.name, m, sources[m.module], m.expect})
		}
	}
	if !mutate && !nightly {
		return checks, nil
	}
	mutants, err := readMutants(filepath.Join("tests", "spec", "mutants.txt"))
	for _, mutant := range mutants {
		c, err := mutant.check(sources)
		if err != nil {
			return nil, err
		}
		checks = append(checks, c)
	}
	return checks, err
}

func (t *tlc) all(ctx context.Context, checks []check, verbose bool) int {
	fmt.Printf("%-34s %10s %10s %6s %7s  %s\n", "configuration", "states", "distinct", "depth", "time", "result")
	began, failed := time.Now(), 0
	for _, c := range checks {
		r := t.check(ctx, c)
		verdict := cmp.Or(r.violated, "holds")
		if r.err != nil || r.violated != c.expect {
			failed++
			verdict = fmt.Sprintf("FAILED: %s, expected %s", verdict, cmp.Or(c.expect, "no violation"))
			if r.err != nil {
				verdict = "FAILED: " + r.err.Error()
			}
		} else if c.expect != "" {
			verdict += " is violated, as expected"
		}
		fmt.Printf("%-34s %10s %10s %6s %6.1fs  %s\n", c.name, r.states, r.distinct, r.depth, r.took.Seconds(), verdict)
		if verbose && r.violated != "" || failed > 0 && r.violated != c.expect {
			fmt.Println(r.trace)
		}
	}
	fmt.Printf("%d passed, %d failed\n", len(checks)-failed, failed)
	fmt.Printf("the specification was checked in %s\n", time.Since(began).Round(time.Second))
	if failed > 0 || len(checks) == 0 {
		return 1
	}
	return 0
}

// configuration returns the module that TLC loads and its configuration file.
func (m *model) configuration() (module, config string) {
	var defs, cfg strings.Builder
	fmt.Fprintf(&defs, "---- MODULE MC ----\nEXTENDS %s\n", m.module)
	fmt.Fprintf(&cfg, "SPECIFICATION %s\nCHECK_DEADLOCK FALSE\n", cmp.Or(m.spec, "Spec"))
	if m.symmetric { // not in the module, because TLC would compute it for many hosts, too
		defs.WriteString("Symmetry == Permutations(Hosts)\n")
		cfg.WriteString("SYMMETRY Symmetry\n")
	}
	if m.invariants != "" {
		fmt.Fprintf(&cfg, "INVARIANTS %s\n", m.invariants)
	}
	if m.properties != "" {
		fmt.Fprintf(&cfg, "PROPERTIES %s\n", m.properties)
	}
	cfg.WriteString("CONSTANTS\n")
	for line := range strings.Lines(strings.TrimSpace(m.constants)) {
		name, value, found := strings.Cut(strings.TrimSpace(line), " = ")
		if !found {
			continue
		}
		if name == "Hosts" { // model values, for symmetry
			fmt.Fprintf(&cfg, "  %s = %s\n", name, value)
			for h := range strings.SplitSeq(strings.Trim(value, "{}"), ", ") {
				fmt.Fprintf(&cfg, "  %s = %s\n", h, h)
			}
			continue
		}
		fmt.Fprintf(&defs, "c_%s == %s\n", name, value)
		fmt.Fprintf(&cfg, "  %s <- c_%s\n", name, name)
	}
	defs.WriteString("====\n")
	return defs.String(), cfg.String()
}
