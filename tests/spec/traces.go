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
	name      string
	steps     int // of the recording
	length    int // lines of all behaviors
	behaviors int
	at        int // the line that no action explains; 0 if all are explained
	line      string
	context   []string // the lines before
	rule      string   // that the step violates, if it is known
	took      time.Duration
	err       error
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
	lineTried    = regexp.MustCompile(`(?m)^<<(\d+), (\d+)>>\n`)
	ruleViolated = regexp.MustCompile(`<<"violates", "(.*)">>`)
)

// trace is a recording as TLC checks it.
type trace struct {
	modules        []string
	module, config string
	names          []string   // of the behaviors
	lines          [][]string // of each behavior
	steps          int        // of the recording
}

// translate reads a recording. The name of the file begins with its kind.
func translate(file string) (*trace, error) {
	switch kind, _, _ := strings.Cut(filepath.Base(file), "-"); kind {
	case "relay":
		all, err := readSteps[steps.RelayStep](file)
		t := &trace{modules: []string{"Relay.tla", "RelayTrace.tla"}, steps: len(all)}
		t.module, t.config, t.names, t.lines = relayModule(all)
		return t, err
	case "commit":
		all, err := readSteps[steps.CommitStep](file)
		t := &trace{modules: []string{"Commit.tla", "CommitTrace.tla"}, steps: len(all)}
		t.module, t.config, t.names, t.lines = commitModule(all)
		return t, err
	}
	r, err := readRecording(file)
	if err != nil {
		return nil, err
	}
	r.outside = strings.HasPrefix(filepath.Base(file), "crash-")
	b := behave(r)
	t := &trace{modules: []string{"Lease.tla", "LeaseTrace.tla"}, lines: [][]string{b.trace()}, names: []string{""}, steps: len(r.steps)}
	t.module, t.config = b.module(t.lines[0])
	return t, nil
}

// traceOptions are Java's for a trace. It has a few thousand states, so the second compiler would
// cost more than it saves: half of the time.
var traceOptions = []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss64m"}

// explain compares a recording with its specification.
func (t *tlc) explain(ctx context.Context, file string) (e explanation) {
	began := time.Now()
	e.name = strings.TrimSuffix(filepath.Base(file), ".jsonl")
	defer func() { e.took = time.Since(began) }()
	r, err := translate(file)
	if err != nil {
		e.err = err
		return e
	}
	e.steps, e.behaviors = r.steps, len(r.lines)
	files := map[string]string{"MC.tla": r.module, "MC.cfg": r.config}
	for _, name := range r.modules {
		text, err := os.ReadFile(filepath.Join("tests", "spec", name))
		if err != nil {
			e.err = err
			return e
		}
		files[name] = string(text)
	}
	out, err := t.run(ctx, files, traceOptions...)
	last := make([]int, len(r.lines)) // the last line that was tried
	for _, tried := range lineTried.FindAllStringSubmatch(out, -1) {
		b, _ := strconv.Atoi(tried[1]) // the regexp admits digits only
		at, _ := strconv.Atoi(tried[2])
		last[b-1] = max(last[b-1], at)
	}
	for b, lines := range r.lines {
		e.length += len(lines)
		switch {
		case e.at > 0 || strings.Contains(out, fmt.Sprintf("<<\"explained\", %d>>", b+1)):
		case err != nil || last[b] == 0 || !strings.Contains(out, "No error has been found"):
			out = lineTried.ReplaceAllString(out, "")
			e.err = fmt.Errorf("behavior %s: %w: %s", r.names[b], cmp.Or(err, errors.New("TLC ended early")), out[max(0, len(out)-800):])
			return e
		default:
			e.at, e.line, e.context = last[b], lines[last[b]-1], lines[max(0, last[b]-30):last[b]]
			if r.names[b] != "" {
				e.line += " of " + r.names[b]
			}
		}
	}
	if rule := ruleViolated.FindStringSubmatch(out); rule != nil && e.at > 0 {
		e.rule = rule[1]
	}
	return e
}

// simulation is a test that records its seeds.
type simulation struct {
	name, pkg string
	tests     string // a regexp
	variable  string // of its first seed; with S appended, of their number
	more      []string
	tags      string
	slow      bool // only with -system
	once      bool // one run with more faults, instead of more seeds
}

const simulated = "^TestSimulation$"

var simulations = []simulation{
	{name: "hosts", pkg: "./changefeed", tests: simulated, variable: "CHANGEFEED_SEED"},
	{name: "relays", pkg: "./infrastructure/relay/relayservice", tests: simulated, variable: "RELAY_SEED"},
	{name: "commits", pkg: "./infrastructure/store/cosmos", tests: simulated, variable: "COMMIT_SEED"},
	{name: "system", pkg: "./tests/sim", tests: simulated, variable: "SIM_SEED", more: []string{"SIM_MINUTES=2"}, slow: true},
	// Of the other crash tests, relays make the same requests as in these.
	{
		name: "crash", pkg: "./tests/crash", variable: "FEEDBOX_SEED", tags: "faults", slow: true, once: true,
		tests: "^(TestRelayKilled.*|TestRelayPaused.*|TestRelayToldToEnd.*|TestNetworkCut|TestEmulatorsKilledUnderLoad)$",
	},
}

// record records seeds of a simulation in a folder. With an overlay, which is a mutant, tests may
// fail. It returns the recordings, those of failed seeds first.
func (s *simulation) record(ctx context.Context, dir, overlay string, first, seeds int) (files []string, err error) {
	args := []string{"test", "-count=1", "-run=" + s.tests, "-tags=" + s.tags, "-timeout=2h"}
	scale := min(0.5, float64(seeds)/250) // a tenth of the faults for 25 seeds, in some five minutes
	environ := slices.Concat(os.Environ(), []string{steps.Folder + "=" + dir, fmt.Sprint(s.variable, "=", first), fmt.Sprint(s.variable, "S=", seeds), fmt.Sprint("FEEDBOX_FAULT_SCALE=", scale)}, s.more)
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
		// The crash tests build the programs that they start, with the flags of the environment.
		flags, err := exec.CommandContext(ctx, "go", "env", "GOFLAGS").Output()
		if err != nil {
			return nil, fmt.Errorf("go env GOFLAGS: %w", err)
		}
		environ = append(environ, "GOFLAGS="+strings.TrimSpace(string(flags)+" -overlay="+overlay))
	}
	test := exec.CommandContext(ctx, "go", append(args, s.pkg)...)
	test.Env = environ
	out, err := test.CombinedOutput()
	if err != nil && overlay == "" {
		return nil, fmt.Errorf("record %s: %w: %s", s.name, err, out)
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

// traces records seeds of the simulations and compares them with the specification.
func (t *tlc) traces(ctx context.Context, first, seeds int, system, verbose bool) int {
	failed := 0
	const batch = 25 // bounds the size of the recordings on disk
	for from := first; from < first+seeds; from += batch {
		dir, err := os.MkdirTemp(t.dir, "steps-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		for _, s := range simulations {
			if s.slow && !system || s.once && from > first {
				continue
			}
			count := min(batch, first+seeds-from)
			if s.once {
				count = seeds
			}
			if _, err := s.record(ctx, dir, "", from, count); err != nil {
				fmt.Fprintln(os.Stderr, err)
				failed = 1
			}
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
	began, recorded, behaviors, lines, failed := time.Now(), 0, 0, 0, 0
	for _, file := range files {
		e := t.explain(ctx, file)
		recorded, behaviors, lines = recorded+e.steps, behaviors+e.behaviors, lines+e.length
		if e.err != nil || e.at > 0 {
			failed++
			fmt.Println(strings.Join(e.context, "\n"))
		}
		if e.err != nil || e.at > 0 || verbose {
			fmt.Printf("%-34s %10d steps %6d lines %6.1fs  %s\n", e.name, e.steps, e.length, e.took.Seconds(), &e)
		}
	}
	fmt.Printf("%d recordings with %d steps, %d behaviors of %d lines: %d not explained, in %s\n", len(files), recorded, behaviors, lines, failed, time.Since(began).Round(time.Second))
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
		line, code := strings.CutPrefix(strings.TrimSpace(line), "code of ")
		of, line, _ := strings.Cut(line, ": ")
		name, rule, _ := strings.Cut(line, " ")
		if !code || !match.MatchString(of+"/"+name) {
			continue
		}
		of, test, one := strings.Cut(of, "/")
		i := slices.IndexFunc(simulations, func(s simulation) bool { return s.name == of })
		if i < 0 {
			fmt.Fprintf(os.Stderr, "mutants.txt: there is no simulation of %s\n", of)
			return 1
		}
		s := simulations[i]
		if one {
			s.tests = "^" + test + "$"
		}
		e := t.codeMutant(ctx, &s, name, strings.TrimSpace(rule))
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
func (t *tlc) codeMutant(ctx context.Context, s *simulation, name, rule string) (e explanation) {
	dir, err := os.MkdirTemp(t.dir, "mutant-")
	if err != nil {
		return explanation{err: err}
	}
	defer os.RemoveAll(dir)
	write := exec.CommandContext(ctx, "go", "run", "./tests/mutants", "-only", "^"+name+"$", "-overlay", dir)
	if out, err := write.CombinedOutput(); err != nil {
		return explanation{err: fmt.Errorf("%w: %s", err, out)}
	}
	seeds, most := 60, 5 // most mutants break the rules of the simulation, too: those seeds come first
	if s.once {
		seeds = 25
	}
	files, err := s.record(ctx, dir, filepath.Join(dir, "overlay.json"), 1, seeds)
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

// run runs TLC on the files of one configuration, for at most half an hour. TLC unpacks its own modules
// into the folder for temporary files, where two runs at the same time would delete each other's.
func (t *tlc) run(ctx context.Context, files map[string]string, options ...string) (out string, err error) {
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
	args := slices.Concat([]string{"-n", "19", "java", "-Xmx2g", "-Djava.io.tmpdir=" + dir}, options, []string{"-cp", t.jar, "tlc2.TLC", "-workers", "1", "-metadir", filepath.Join(dir, "states"), "MC"})
	java := exec.CommandContext(ctx, "nice", args...)
	java.Dir = dir
	text, err := java.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(text), err
}
