// Command changefeed proves that the tests of package changefeed can fail: it
// removes one safeguard at a time and expects the test named for it to turn red.
//
//	go run ./tests/mutants/changefeed [-v] [-j 2] [name...]
//
// Each *.patch beside this file says what it removes and which test it must turn
// red. Nothing in the checkout is changed: a patch is applied to copies, which
// replace the originals for one run of the test (go build -overlay). It needs the
// go and git commands.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// mutant is one patch.
type mutant struct {
	name    string
	path    string
	removes string
	pkg     string
	test    string   // regular expression for -run
	files   []string // it changes, from the module's root
}

func main() {
	verbose := flag.Bool("v", false, "print the output of each test")
	parallel := flag.Int("j", max(1, runtime.NumCPU()/2), "how many mutants to try at once")
	flag.Parse()
	if err := run(flag.Args(), *parallel, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// result is what became of a mutant.
type result struct {
	mutant
	dead bool
	took time.Duration
	out  string
	err  error
}

// run tries the named mutants, or all, and prints a table in Markdown.
func run(names []string, parallel int, verbose bool) error {
	root, err := output("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	patches, err := filepath.Glob(filepath.Join(root, "tests", "mutants", "changefeed", "*.patch"))
	if err != nil {
		return err
	}
	var results []*result
	var group errgroup.Group
	group.SetLimit(parallel)
	began := time.Now()
	for _, path := range patches {
		m, err := parse(path)
		if err != nil {
			return err
		}
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		r := &result{mutant: m}
		results = append(results, r)
		group.Go(func() error {
			began := time.Now()
			r.dead, r.out, r.err = r.run(root)
			r.took = time.Since(began)
			fmt.Fprintf(os.Stderr, "%-9s %s, %.1f s\n", r.verdict(), r.name, r.took.Seconds())
			if verbose {
				fmt.Fprintln(os.Stderr, r.out)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return nil
	return report(results, time.Since(began))
}

func (r *result) verdict() string {
	switch {
	case r.err != nil:
		return "BROKEN"
	case r.dead:
		return "killed"
	}
	return "SURVIVED"
}

// failed matches a test that turned red.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\w+)`)

// killers names the tests that turned red.
func (r *result) killers() string {
	var tests []string
	for _, m := range failed.FindAllStringSubmatch(r.out, -1) {
		if !slices.Contains(tests, m[1]) {
			tests = append(tests, m[1])
		}
	}
	if len(tests) == 0 && r.dead {
		return r.test + " (the process died)"
	}
	return strings.Join(tests, ", ")
}

// report prints the table and fails if a mutant lives.
func report(results []*result, took time.Duration) error {
	fmt.Println("| mutant | removes | killed by | seconds |\n|---|---|---|---|")
	var errs []error
	killed := 0
	for _, r := range results {
		by := r.killers()
		switch {
		case r.err != nil:
			by = r.verdict()
			errs = append(errs, fmt.Errorf("%s: %w\n%s", r.name, r.err, r.out))
		case !r.dead:
			by = r.verdict()
			errs = append(errs, fmt.Errorf("%s survives %s: %s", r.name, r.test, r.removes))
		default:
			killed++
		}
		fmt.Printf("| %s | %s | %s | %.1f |\n", r.name, r.removes, by, r.took.Seconds())
	}
	fmt.Printf("\n%d mutants, %d killed, in %.0f s\n", len(results), killed, took.Seconds())
	if len(results) == 0 {
		errs = append(errs, errors.New("no such mutant"))
	}
	return errors.Join(errs...)
}

// parse reads the lines above the patch itself.
func parse(path string) (mutant, error) {
	m := mutant{name: strings.TrimSuffix(filepath.Base(path), ".patch"), path: path}
	text, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "removes: "); ok {
			m.removes = rest
		}
		if rest, ok := strings.CutPrefix(line, "kills: "); ok {
			m.pkg, m.test, _ = strings.Cut(rest, " ")
		}
		if rest, ok := strings.CutPrefix(line, "+++ b/"); ok {
			m.files = append(m.files, rest)
		}
	}
	if m.removes == "" || m.test == "" || len(m.files) == 0 {
		return m, fmt.Errorf("%s: wants the lines removes: and kills: above a patch", path)
	}
	return m, lines.Err()
}

// run reports whether the mutant's test fails.
func (m *mutant) run(root string) (dead bool, out string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, "", err
	}
	defer os.RemoveAll(dir)
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, f := range m.files {
		text, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			return false, "", err
		}
		to := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return false, "", err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return false, "", err
		}
		overlay.Replace[filepath.Join(root, f)] = to
	}
	apply := exec.Command("git", "apply", "-p1", m.path)
	apply.Dir = dir
	if text, err := apply.CombinedOutput(); err != nil {
		return false, string(text), fmt.Errorf("the patch does not fit any more: %w", err)
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return false, "", err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, list, 0o644); err != nil {
		return false, "", err
	}
	test := exec.Command("go", "test", "-overlay", file, "-vet=off", "-count=1", "-timeout=90s", "-run", m.test, m.pkg)
	test.Dir = root
	text, err := test.CombinedOutput()
	out = string(text)
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(out, "no tests to run"):
		return false, out, errors.New("no such test")
	case err == nil:
		return false, out, nil
	case !errors.As(err, &exit):
		return false, out, err
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return false, out, errors.New("the mutant does not build")
	}
	return true, out, nil
}

func output(name string, args ...string) (string, error) {
	text, err := exec.Command(name, args...).Output()
	return strings.TrimSpace(string(text)), err
}
