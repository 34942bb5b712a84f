package result_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/tests/bench/measure"
	"feedbox/tests/bench/result"
)

var machine = result.Machine{CPU: "A processor", Cores: 2, MemoryMB: 4096, System: "linux/amd64", Go: "go1.26", Commit: "0123456789ab", Load: 0.25}

// rates returns a file of one figure with a floor of 100 and a run per value.
func rates(values ...float64) *result.File {
	f := &result.File{Format: result.Format, Machine: machine}
	for _, v := range values {
		f.Add("api", result.Run{Figures: []measure.Figure{stamped(measure.Rate("updates", v, "op/s").Over(100).Wants(measure.RatioAtLeast(0.85)))}})
	}
	return f
}

// costs returns a file of one figure without a floor.
func costs(values ...float64) *result.File {
	f := &result.File{Format: result.Format, Machine: machine}
	for _, v := range values {
		f.Add("api", result.Run{Figures: []measure.Figure{stamped(measure.Cost("memory", v, "MB"))}})
	}
	return f
}

func stamped(f measure.Figure) measure.Figure { f.Stage = "api"; return f }

func TestSummariesAreMediansWithTheirSpread(t *testing.T) {
	t.Parallel()
	s := rates(90, 80, 88).Summaries()
	if len(s) != 1 || s[0].Value != 88 || s[0].Ratio != 0.88 || s[0].Runs != 3 || math.Abs(s[0].Spread-0.10/0.88) > 1e-9 || !s[0].Met() {
		t.Errorf("%+v", s)
	}
	if s := rates(90, 70, 88).Summaries(); !s[0].Wide || costs(90, 70, 88).Summaries()[0].Wide {
		t.Errorf("a ratio that spreads by 23 %% is wide, a value is not judged: %+v", s)
	}
	if s := rates(80, 90).Summaries(); s[0].Value != 85 {
		t.Errorf("the median of two: %+v", s)
	}
	if s := rates(80).Summaries(); s[0].Spread != 0 || s[0].Runs != 1 || s[0].Met() {
		t.Errorf("a single run: %+v", s)
	}
}

func TestCompareRule(t *testing.T) {
	t.Parallel()
	otherMachine := func(f *result.File) *result.File { f.Machine.Cores = 64; return f }
	for name, c := range map[string]struct {
		old, now *result.File
		want     result.Verdict
	}{
		"the same":                                 {rates(90, 90), rates(90, 90), result.Steady},
		"5 % are noise, however steady":            {rates(100, 100), rates(95.1, 95.1), result.Steady},
		"6 % are not":                              {rates(100, 100), rates(94, 94), result.Regressed},
		"unless the old runs spread more":          {rates(96, 100, 104), rates(94, 94), result.Steady},
		"or the new ones":                          {rates(100, 100), rates(89, 94, 99), result.Steady},
		"one run beside several: 14 % are noise":   {rates(100), rates(86, 86, 86), result.Steady},
		"more than the spread":                     {rates(96, 100, 104), rates(90, 91), result.Regressed},
		"a single run: 14 % are noise":             {rates(100), rates(86), result.Steady},
		"a single run: 16 % are not":               {rates(100), rates(84), result.Regressed},
		"a higher rate":                            {rates(100, 100), rates(110, 110), result.Improved},
		"a higher cost":                            {costs(100, 100), costs(110, 110), result.Regressed},
		"a lower cost":                             {costs(100, 100), costs(90, 90), result.Improved},
		"ratios compare over machines":             {rates(100, 100), otherMachine(rates(80, 80)), result.Regressed},
		"values do not":                            {costs(100, 100), otherMachine(costs(200, 200)), result.Uncertain},
		"a floor of zero before is no way to tell": {costs(0, 0), costs(0, 0), result.Steady},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := result.Compare(c.old, c.now)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Changes) != 1 || got.Changes[0].Verdict != c.want || got.Regressed() != (c.want == result.Regressed) {
				t.Errorf("%+v, regressed %t; want %s", got.Changes, got.Regressed(), c.want)
			}
		})
	}
}

func TestCompareNamesWhatIsOnlyInOneFile(t *testing.T) {
	t.Parallel()
	c, err := result.Compare(rates(100), costs(100))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Changes) != 2 || c.Changes[0].Verdict != result.Added || c.Changes[1].Verdict != result.Missing || c.Regressed() {
		t.Errorf("%+v", c.Changes)
	}
}

func TestCompareCountsANewFailure(t *testing.T) {
	t.Parallel()
	broken := rates(100)
	broken.Add("relay", result.Run{Failure: "lost 3 events"})
	c, err := result.Compare(rates(100), broken)
	if err != nil || !c.Regressed() {
		t.Errorf("a stage that fails now is no regression: %+v, %v", c, err)
	}
	if c, err = result.Compare(broken, broken); err != nil || c.Regressed() {
		t.Errorf("a stage that failed before is one: %+v, %v", c, err)
	}
}

func TestCompareRefusesOtherSettings(t *testing.T) {
	t.Parallel()
	quick := rates(100)
	quick.Quick = true
	if _, err := result.Compare(rates(100), quick); err == nil {
		t.Error("a quick file was compared with a full one")
	}
}

func TestFileIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	f := rates(90, 80)
	f.Started, f.Seconds = time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC), 12.5
	f.Add("relay", result.Run{Seconds: 3, Failure: "lost 3 events"})
	path := filepath.Join(t.TempDir(), "bench.json")
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	again, err := result.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, again); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	raw, err := os.ReadFile(path)
	if s := again.Summary; len(s) != 1 || s[0].Runs != 2 || math.Abs(s[0].Spread-0.1/0.85) > 1e-9 || s[0].Wide {
		t.Errorf("the summary in the file: %+v", s)
	}
	if err != nil || !strings.Contains(string(raw), `"bound": ">="`) {
		t.Errorf("the file is hard to read: %s, %v", raw, err)
	}
	for name, text := range map[string]string{"no JSON": "hello", "another format": `{"format":99}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := result.Read(path); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	f := rates(90, 80, 60)
	f.Stages[0].Runs[2].Figures[0] = f.Stages[0].Runs[2].Figures[0].Using(420*time.Microsecond, 300*time.Microsecond)
	f.Add("relay", result.Run{
		Figures: []measure.Figure{{Stage: "relay", Name: "events", Value: 61234.5, Unit: "events/s", Better: measure.Higher, Note: "order verified"}},
		Failure: "lost 3 events",
	})
	var text strings.Builder
	if err := f.Table(&text); err != nil {
		t.Fatal(err)
	}
	want := `A processor, 2 cores, 4096 MB, linux/amd64, go1.26, commit 0123456789ab, load 0.25 at the start

API      value  unit  floor  ratio  goal             CPU/op  floor's  spread
updates  80.0   op/s  100    0.80   >= 0.85x MISSED                   38 % WIDE

RELAY   value  unit      floor  ratio  goal  CPU/op  floor's  spread
events  61234  events/s                                               order verified

Figures: 2. Goals missed: 1. 0 of 1 ratios repeat within 15 %; the widest spread is 38 % (api: updates).
FAILED relay, run 1: lost 3 events
`
	if diff := cmp.Diff(want, trimmed(text.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestComparisonTable(t *testing.T) {
	t.Parallel()
	old, now := rates(100, 100), rates(80, 80)
	for _, f := range []*result.File{old, now} {
		f.Add("relay", result.Run{Figures: []measure.Figure{{Stage: "relay", Name: "memory", Value: 10, Unit: "MB", Better: measure.Lower}}})
	}
	c, err := result.Compare(old, now)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := c.Table(&text); err != nil {
		t.Fatal(err)
	}
	want := result.Rule + `

FIGURE        old    new    worse by  noise
api: updates  1.00x  0.80x  +20 %     5 %    REGRESSED

Steady within noise: 1.
`
	if diff := cmp.Diff(want, trimmed(text.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// trimmed removes trailing blanks from all lines.
func trimmed(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.Join(lines, "\n")
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	m := result.ThisMachine()
	if m.Cores < 1 || m.Go == "" || m.System == "" || !m.Same(m) {
		t.Errorf("%+v", m)
	}
}
