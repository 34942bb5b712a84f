// Command changefeed proves that the tests of package changefeed can fail: it
// removes one safeguard at a time and expects the test named for it to turn red.
//
//	go run ./tests/mutants/changefeed [-v] [name...]
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
	"slices"
	"strings"
	"time"
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
	flag.Parse()
	if err := run(flag.Args(), *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(names []string, verbose bool) error {
	root, err := output("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	patches, err := filepath.Glob(filepath.Join(root, "tests", "mutants", "changefeed", "*.patch"))
	if err != nil {
		return err
	}
	killed, survived := 0, 0
	for _, path := range patches {
		m, err := parse(path)
		if err != nil {
			return err
		}
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		began := time.Now()
		dead, out, err := m.run(root)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", m.name, err, out)
		}
		verdict := "killed"
		if dead {
			killed++
		} else {
			survived++
			verdict = "SURVIVED"
		}
		fmt.Printf("%-9s %-28s %4.1fs  %s  (%s %s)\n", verdict, m.name, time.Since(began).Seconds(), m.removes, m.pkg, m.test)
		if verbose {
			fmt.Println(out)
		}
	}
	fmt.Printf("%d killed, %d survived\n", killed, survived)
	if survived > 0 || killed == 0 {
		return errors.New("a safeguard can be removed without a test noticing")
	}
	return nil
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
	var failed *exec.ExitError
	switch {
	case err == nil && strings.Contains(out, "no tests to run"):
		return false, out, errors.New("no such test")
	case err == nil:
		return false, out, nil
	case !errors.As(err, &failed):
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
