package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"feedbox/tests/spec/steps"
)

// explanation is the result of comparing a recording with the specification.
type explanation struct {
	name    string
	steps   int // of the recording
	length  int // lines of the behavior
	at      int // the line that no action explains; 0 if all are explained
	line    string
	context []string // the lines before
	rule    string   // that the step violates, if it is known
	took    time.Duration
	err     error
}

func (e *explanation) String() string {
	switch {
	case e.err != nil:
		return "FAILED: " + e.err.Error()
	case e.at == 0:
		return "explained"
	}
	text := fmt.Sprintf("refused at line %d, %s", e.at, e.line)
	if e.rule != "" {
		text += ": " + e.rule
	}
	return text
}

// module returns the module that TLC loads, and its configuration.
func (b *behavior) module(lines []string) (module, config string) {
	var defs, cfg strings.Builder
	leases := slices.Sorted(maps.Keys(b.leases))
	fmt.Fprintf(&defs, "---- MODULE MC ----\nEXTENDS LeaseTrace\n")
	define := func(name, value string) {
		fmt.Fprintf(&defs, "c_%s == %s\n", name, value)
		fmt.Fprintf(&cfg, "  %s <- c_%s\n", name, name)
	}
	cfg.WriteString("SPECIFICATION Explained\nCHECK_DEADLOCK FALSE\nCONSTANTS\n")
	define("Hosts", string(set(slices.Sorted(maps.Keys(b.hosts)))))
	define("Leases", string(set(leases)))
	define("First", strconv.Quote(steps.Info))
	define("Kids", b.function(leases, func(l string) string { return string(set(b.splits[l])) }))
	ranges := b.ranges(leases)
	define("Range", b.function(leases, func(l string) string { return string(set(ranges[l])) }))
	keys := make([]string, len(b.changes))
	for i := range b.changes {
		keys[i] = strconv.Quote(b.changes[i].Key)
	}
	define("Log", "<<"+strings.Join(keys, ", ")+">>")
	// A reading is rounded down, so an interval of a host may be a microsecond longer or shorter.
	define("Expiry", fmt.Sprint(b.expiry-1))
	define("Margin", fmt.Sprint(b.expiry/10-2))
	define("MaxFaults", "1000000000")
	define("Faults", `{"crash", "operator"}`)
	define("Lossy", "TRUE")
	define("Prompt", "FALSE")
	fmt.Fprintf(&defs, "c_Trace == <<\n%s>>\n====\n", strings.Join(lines, ",\n"))
	cfg.WriteString("  Trace <- c_Trace\n")
	return defs.String(), cfg.String()
}

func (b *behavior) function(of []string, value func(string) string) string {
	parts := make([]string, len(of))
	for i, name := range of {
		parts[i] = fmt.Sprintf("n = %q -> %s", name, value(name))
	}
	return fmt.Sprintf("[n \\in %s |-> CASE %s]", set(of), strings.Join(parts, " [] "))
}

// ranges returns the keys of each lease. Every smallest interval between two bounds counts as a key,
// so that leases without keys overlap, too.
func (b *behavior) ranges(leases []string) map[string][]string {
	points := map[string]string{} // key to place
	bounds := map[string]bool{}
	for _, l := range leases {
		if low, high, found := strings.Cut(l, "-"); found {
			bounds[low], bounds[high] = true, true
		}
	}
	for bound := range bounds {
		points["from "+bound] = bound
	}
	for i := range b.changes {
		points[b.changes[i].Key] = b.changes[i].EPK
	}
	ranges := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(points)) {
		for _, l := range leases {
			low, high, bounded := strings.Cut(l, "-")
			if place := points[key]; !bounded || low <= place && place < high {
				ranges[l] = append(ranges[l], key)
			}
		}
	}
	return ranges
}

var (
	lineTried    = regexp.MustCompile(`(?m)^(\d+)\n`)
	ruleViolated = regexp.MustCompile(`<<"violates", "(.*)">>`)
)

// explain compares a recording with Lease.tla.
func (t *tlc) explain(ctx context.Context, file string) (e explanation) {
	began := time.Now()
	e.name = strings.TrimSuffix(filepath.Base(file), ".jsonl")
	defer func() { e.took = time.Since(began) }()
	r, err := readRecording(file)
	if err != nil {
		e.err = err
		return e
	}
	b := behave(r)
	lines := b.trace()
	e.steps, e.length = len(r.steps), len(lines)
	module, config := b.module(lines)
	files := map[string]string{"MC.tla": module, "MC.cfg": config}
	for _, name := range []string{"Lease.tla", "LeaseTrace.tla"} {
		text, err := os.ReadFile(filepath.Join("tests", "spec", name))
		if err != nil {
			e.err = err
			return e
		}
		files[name] = string(text)
	}
	out, err := t.run(ctx, files)
	if strings.Contains(out, "\"explained\"") {
		return e
	}
	tried := lineTried.FindAllStringSubmatch(out, -1)
	if err != nil || len(tried) == 0 || !strings.Contains(out, "No error has been found") {
		out = lineTried.ReplaceAllString(out, "")
		e.err = fmt.Errorf("%w: %s", cmp.Or(err, errors.New("TLC ended early")), out[max(0, len(out)-800):])
		return e
	}
	e.at, _ = strconv.Atoi(tried[len(tried)-1][1]) // the regexp admits digits only
	e.line = lines[e.at-1]
	e.context = lines[max(0, e.at-30):e.at]
	if rule := ruleViolated.FindStringSubmatch(out); rule != nil {
		e.rule = rule[1]
	}
	return e
}

// record runs seeds of the simulation of hosts and records them in a folder. With an overlay, which
// is a mutant, tests may fail. It returns the recordings, those of failed seeds first.
func record(ctx context.Context, dir, overlay string, first, seeds int) (files []string, err error) {
	args := []string{"test", "-count=1", "-run=^TestSimulation$", "-timeout=10m"}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	test := exec.CommandContext(ctx, "go", append(args, "./changefeed")...)
	test.Env = append(os.Environ(), steps.Folder+"="+dir, fmt.Sprint("CHANGEFEED_SEED=", first), fmt.Sprint("CHANGEFEED_SEEDS=", seeds))
	out, err := test.CombinedOutput()
	if err != nil && overlay == "" {
		return nil, fmt.Errorf("record: %w: %s", err, out)
	}
	files, err = filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if len(files) == 0 {
		return nil, fmt.Errorf("nothing was recorded: %w: %s", err, out)
	}
	failed := func(file string) int {
		_, seed, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".jsonl"), "-")
		if strings.Contains(string(out), "--- FAIL: TestSimulation/seed="+seed+" ") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(failed(a), failed(b)) })
	return files, err
}

// recordSystem records seeds of the simulation of the whole system.
func recordSystem(ctx context.Context, dir string, first, seeds int) error {
	test := exec.CommandContext(ctx, "go", "test", "-count=1", "-run=^TestSimulation$", "-timeout=30m", "./tests/sim")
	test.Env = append(os.Environ(), steps.Folder+"="+dir, fmt.Sprint("SIM_SEED=", first), fmt.Sprint("SIM_SEEDS=", seeds), "SIM_MINUTES=2")
	if out, err := test.CombinedOutput(); err != nil {
		return fmt.Errorf("record: %w: %s", err, out)
	}
	return nil
}

// traces records seeds of the simulation of hosts, and of that of the whole system, and compares them
// with the specification.
func (t *tlc) traces(ctx context.Context, first, seeds int, system, verbose bool) int {
	failed := 0
	const batch = 25 // bounds the size of the recordings on disk
	for from := first; from < first+seeds; from += batch {
		dir, err := os.MkdirTemp(t.dir, "steps-")
		if err == nil {
			n := min(batch, first+seeds-from)
			_, err = record(ctx, dir, "", from, n)
			if err == nil && system {
				err = recordSystem(ctx, dir, from, n)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = 1
		}
		failed = max(failed, t.compare(ctx, dir, verbose))
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return failed
}

// compare compares the recordings of a folder with the specification. Each must be explained.
func (t *tlc) compare(ctx context.Context, dir string, verbose bool) int {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		fmt.Fprintln(os.Stderr, "no recordings in", dir)
		return 1
	}
	began, recorded, lines, failed := time.Now(), 0, 0, 0
	for _, file := range files {
		e := t.explain(ctx, file)
		recorded, lines = recorded+e.steps, lines+e.length
		if e.err != nil || e.at > 0 {
			failed++
			fmt.Println(strings.Join(e.context, "\n"))
		}
		if e.err != nil || e.at > 0 || verbose {
			fmt.Printf("%-34s %10d steps %6d lines %6.1fs  %s\n", e.name, e.steps, e.length, e.took.Seconds(), &e)
		}
	}
	fmt.Printf("%d recordings with %d steps, %d lines: %d not explained, in %s\n", len(files), recorded, lines, failed, time.Since(began).Round(time.Second))
	return min(failed, 1)
}

// codeMutants records seeds with each mutant of the code in mutants.txt. The specification must refuse
// one of its recordings.
func (t *tlc) codeMutants(ctx context.Context, match *regexp.Regexp) int {
	text, err := os.ReadFile(filepath.Join("tests", "spec", "mutants.txt"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	passed, failed := 0, 0
	for line := range strings.Lines(string(text)) {
		line, code := strings.CutPrefix(strings.TrimSpace(line), "code: ")
		name, rule, _ := strings.Cut(line, " ")
		if !code || !match.MatchString(name) {
			continue
		}
		e := t.codeMutant(ctx, name, strings.TrimSpace(rule))
		refused := e.err == nil && e.at > 0
		if refused {
			passed++
		} else {
			failed++
		}
		fmt.Printf("%-52s %-14s %6.1fs  %s\n", name, e.name, e.took.Seconds(), &e)
	}
	fmt.Printf("%d mutants of the code are refused, %d are not\n", passed, failed)
	return min(failed, 1)
}

// codeMutant returns the first refusal of recordings with a mutant. rule is the rule or the kind of
// line to expect; other refusals count only if it is empty.
func (t *tlc) codeMutant(ctx context.Context, name, rule string) (e explanation) {
	dir, err := os.MkdirTemp(t.dir, "mutant-")
	if err != nil {
		return explanation{err: err}
	}
	defer os.RemoveAll(dir)
	write := exec.CommandContext(ctx, "go", "run", "./tests/mutants", "-only", "^"+name+"$", "-overlay", dir)
	if out, err := write.CombinedOutput(); err != nil {
		return explanation{err: fmt.Errorf("%w: %s", err, out)}
	}
	const seeds, most = 60, 5 // most mutants break the rules of the simulation, too: those seeds come first
	files, err := record(ctx, dir, filepath.Join(dir, "overlay.json"), 1, seeds)
	if err != nil {
		return explanation{err: err}
	}
	for _, file := range files[:min(most, len(files))] {
		if e = t.explain(ctx, file); e.err != nil || e.at > 0 && strings.Contains(e.line+e.rule, rule) {
			return e
		}
	}
	return e
}

// run runs TLC on the files of one configuration, for at most half an hour.
func (t *tlc) run(ctx context.Context, files map[string]string) (out string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp(t.dir, "run-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	java := exec.CommandContext(ctx, "nice", "-n", "19", "java", "-Xmx2g", "-XX:+UseParallelGC", "-cp", t.jar, "tlc2.TLC",
		"-workers", "1", "-metadir", filepath.Join(dir, "states"), "MC")
	java.Dir = dir
	text, err := java.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(text), err
}
