// Command mutants proves that the tests can fail: it removes one safeguard at a time and
// expects the behaviour test named for it to fail.
//
//	go run ./tests/mutants [-only regexp] [-checkout] [-jobs n] [-timeout d] [-v]
//	go run ./tests/mutants -only name -overlay folder
//
// The archives (*.txtar) of this folder contain the mutants. README.md describes their
// form, how to add one, and when a mutant counts as killed.
//
// The program copies the files of HEAD (with -checkout: of the checkout) to a temporary
// directory and runs the named tests there, which must pass. Then it runs the tests of
// each mutant with go build -overlay. The copy itself never changes, so mutants run in
// parallel and share the build cache.
//
// The table goes to standard output, progress to standard error. An interrupted run
// prints the results so far. The exit status is 1 if a mutant was not killed, or if a
// named test fails without it. The program needs the go and git commands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options are the command-line flags.
type options struct {
	only     *regexp.Regexp
	checkout bool
	verbose  bool
	jobs     int
	timeout  time.Duration
	overlay  string
}

func main() {
	var o options
	only := flag.String("only", "", "run the mutants whose `regexp` matches archive/name")
	flag.BoolVar(&o.checkout, "checkout", false, "test the checkout instead of HEAD")
	flag.BoolVar(&o.verbose, "v", false, "print the test output of each mutant")
	flag.IntVar(&o.jobs, "jobs", 2, "number of mutants to run in parallel")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Minute, "timeout of one test run")
	flag.StringVar(&o.overlay, "overlay", "", "write overlay.json of one mutant of the checkout to this `folder`, and run nothing")
	flag.Parse()
	var err error
	if o.only, err = regexp.Compile(*only); err != nil || flag.NArg() > 0 || o.jobs < 1 {
		fmt.Fprintln(os.Stderr, "mutants: no arguments allowed; -only needs a regular expression, -jobs at least 1:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	home := filepath.Join(root, "tests", "mutants")
	all, err := readMutants(home)
	if err != nil {
		return err
	}
	if _, err := checkRequired(filepath.Join(home, "required.txt"), all); err != nil {
		return err
	}
	var chosen []*mutant
	for _, m := range all {
		if o.only.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return errors.New("no mutant matches")
	}
	if o.overlay != "" {
		if len(chosen) > 1 {
			return errors.New("-overlay needs one mutant")
		}
		_, err := chosen[0].overlay(root, o.overlay)
		return err
	}
	tree, remove, err := copyTree(ctx, root, o.checkout)
	if err != nil {
		return err
	}
	defer remove()
	broken, err := baseline(ctx, tree, chosen, o)
	if err != nil {
		return err
	}
	results := runAll(ctx, tree, chosen, broken, o)
	results = slices.DeleteFunc(results, func(r result) bool { return r.verdict == notRun })
	fmt.Print(report(results))
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted after %d of %d mutants", len(results), len(chosen))
	}
	if bad := len(results) - count(results, killed); bad > 0 {
		return fmt.Errorf("%d of %d mutants were not killed", bad, len(results))
	}
	return nil
}

// runAll runs o.jobs mutants in parallel and returns the results in the order of chosen.
func runAll(ctx context.Context, tree string, chosen []*mutant, broken map[*mutant]string, o options) []result {
	results := make([]result, len(chosen))
	for i, m := range chosen {
		results[i] = result{mutant: m, verdict: notRun}
	}
	next := make(chan int)
	var workers sync.WaitGroup
	var printing sync.Mutex
	for range o.jobs {
		workers.Go(func() {
			for i := range next {
				r := result{mutant: chosen[i], verdict: baselineFails, detail: broken[chosen[i]]}
				if r.detail == "" {
					r = attempt(ctx, tree, chosen[i], o)
				}
				if ctx.Err() != nil {
					continue // the tests may have failed because of the interrupt
				}
				results[i] = r
				printing.Lock()
				fmt.Fprintf(os.Stderr, "%-18s %-44s %5.1fs  %s\n", r.verdict, r.mutant.name, r.took.Seconds(), r.by())
				if o.verbose {
					fmt.Fprintln(os.Stderr, r.detail)
				} else if r.verdict != killed {
					fmt.Fprintln(os.Stderr, end(r.detail))
				}
				printing.Unlock()
			}
		})
	}
	for i := range chosen {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	return results
}

// end returns the last lines of a text.
func end(text string) string {
	const most = 25
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
