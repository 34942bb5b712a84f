// Command mutants proves that the tests can fail: it takes one safeguard away at a
// time and expects the behaviour test named for it to turn red.
//
//	go run ./tests/mutants [-only regexp] [-update] [-checkout] [-jobs n] [-timeout d] [-v]
//
// Every *.patch below this directory is a mutant. The lines above its diff say
// what it takes away and which test must notice:
//
//	removes: a refused event's followers wait with it
//	kills: ./application/relay TestARefusedEventAndItsFollowersAreParked
//
// Tests are named whole, or as Test/part-of-a-subtest, and divided by |. There may be
// several kills lines (one failing test is enough), and flags of go test before the
// package. required.txt lists mistakes that must have a mutant.
//
// The program copies the files of HEAD (with -checkout: those of the checkout, as
// they are) to a temporary directory. There the named tests must pass. Then each
// patch replaces its files for one run of its tests (go build -overlay); nothing
// in the copy changes, so mutants run side by side and share the build cache. A
// patch may have moved by any number of lines, as long as its context is found.
//
// The table goes to standard output, progress to standard error. With -update it is
// also written to README.md beside this file; rows of mutants that did not run stay as
// they were. An interrupted run keeps what it found so far.
//
// A mutant is killed if an assertion of a named test fails, and fails again in a second
// run. A panic, a run that does not end, a data race alone, a build that fails and a
// failure outside the named tests are no kill; the table says which of them it was.
// The exit status is 1 if a mutant was not killed, or if a named test fails without it.
// It needs the go and git commands.
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

// options are the command line.
type options struct {
	only     *regexp.Regexp
	update   bool
	checkout bool
	verbose  bool
	jobs     int
	timeout  time.Duration
}

func main() {
	var o options
	only := flag.String("only", "", "run the mutants whose `regexp` matches directory/name")
	flag.BoolVar(&o.update, "update", false, "write README.md beside the program")
	flag.BoolVar(&o.checkout, "checkout", false, "test the checkout as it is, not HEAD")
	flag.BoolVar(&o.verbose, "v", false, "print what the tests of each mutant print")
	flag.IntVar(&o.jobs, "jobs", 2, "mutants at a time")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Minute, "for the tests of one mutant")
	flag.Parse()
	var err error
	if o.only, err = regexp.Compile(*only); err != nil || flag.NArg() > 0 || o.jobs < 1 {
		fmt.Fprintln(os.Stderr, "mutants: wants no arguments, a regular expression for -only and -jobs of 1 or more:", err)
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
	required, err := readRequired(filepath.Join(home, "required.txt"), all)
	if err != nil {
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
	if o.update {
		page := filepath.Join(home, "README.md")
		text := report(merge(results, all, readPage(page)), required)
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			return err
		}
	}
	fmt.Print(report(results, nil))
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted after %d of %d mutants", len(results), len(chosen))
	}
	if bad := len(results) - count(results, killed); bad > 0 {
		return fmt.Errorf("%d of %d mutants were not killed", bad, len(results))
	}
	return nil
}

// runAll runs the mutants, some at a time, and returns their results in order.
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
					continue // what it ended with shows nothing
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

// end is the last lines of a text.
func end(text string) string {
	const most = 25
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
