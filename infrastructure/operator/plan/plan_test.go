package plan

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func planOf(t *testing.T, changes float64, edit func(*Input)) *Plan {
	t.Helper()
	in := Defaults()
	in.Changes = changes
	if edit != nil {
		edit(&in)
	}
	p, err := New(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Plan) line(t *testing.T, name string) Line {
	t.Helper()
	i := slices.IndexFunc(p.Lines, func(l Line) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no line %q", name)
	}
	return p.Lines[i]
}

func during(d time.Duration) func(*Input) { return func(in *Input) { in.TTL = Duration(d) } }

// A million changes of 1 KB a second, the example with which the planner was requested: some 20 M
// RU/s, 2,000 partitions, 20 containers, 250 units in 4 namespaces; by storage 17,280 partitions.
func TestAMillionChangesASecond(t *testing.T) {
	day, tenDays := planOf(t, 1e6, during(24*time.Hour)), planOf(t, 1e6, nil)
	for what, pair := range map[string][2]int{
		"containers": {day.Containers, 20}, "messaging units": {day.MessagingUnits, 250}, "namespaces": {day.Namespaces, 4}, "units of a namespace": {day.UnitsOfNamespace, 64},
		"partitions for a day": {day.StorePartitions, 1_728}, "partitions for ten days": {tenDays.StorePartitions, 17_280},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %d, want %d", what, pair[0], pair[1])
		}
	}
	for what, pair := range map[string][2]float64{
		"request units": {day.RequestUnits, 20e6}, "partitions by throughput": {float64(day.RatePartitions), 2000},
		"request units for ten days": {tenDays.RequestUnits, 20e6}, // more, because more ranges are polled
	} {
		if math.Abs(pair[0]-pair[1]) > pair[1]/20 {
			t.Errorf("%s: %v, want some %v", what, pair[0], pair[1])
		}
	}
}

func TestTheProposedTTLIsSafeAndSaves(t *testing.T) {
	for name, c := range map[string]struct {
		changes float64
		edit    func(*Input)
		want    time.Duration
	}{
		"ten days are too expensive":          {1e6, nil, 27 * time.Hour},
		"the given one costs nothing more":    {1e6, during(25 * time.Hour), 25 * time.Hour},
		"a shorter one saves too little":      {200, nil, 240 * time.Hour},
		"the given one is too short":          {200, during(2 * time.Hour), 24 * time.Hour},
		"the outage needs more":               {1e6, func(in *Input) { in.Outage = Duration(20 * time.Hour) }, 80 * time.Hour},
		"aggregates fill all partitions":      {1e6, func(in *Input) { in.Aggregates = 1e12 }, 24 * time.Hour},
		"few aggregates leave partitions":     {1e6, func(in *Input) { in.Aggregates = 1e9 }, 27 * time.Hour},
		"measured request units move the TTL": {1e6, func(in *Input) { in.ChangeUnits = 20 }, 33 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, c.changes, c.edit)
			if time.Duration(p.TTL) != c.want {
				t.Errorf("%s, want %s: %s", p.TTL, c.want, p.TTLReason)
			}
			if p.TTL < 4*p.Input.Outage {
				t.Errorf("%s is less than four times the outage of %s", p.TTL, p.Input.Outage)
			}
		})
	}
}

// Each input changes the lines that depend on it, in the right direction.
func TestEveryInputMovesItsLines(t *testing.T) {
	base := func(in *Input) { in.Aggregates = 1e6 }
	for name, c := range map[string]struct {
		edit func(*Input)
		line string
		up   bool
	}{
		"peak":             {func(in *Input) { in.Peak = 2 }, "request units", true},
		"events":           {func(in *Input) { in.Events = 3 }, "messaging units", true},
		"event size":       {func(in *Input) { in.EventBytes = 5000 }, "storage of events", true},
		"state size":       {func(in *Input) { in.StateBytes = 5000 }, "request units of a change", true},
		"aggregates":       {func(in *Input) { in.Aggregates = 2e6 }, "storage of aggregates", true},
		"TTL":              {during(time.Hour * 48), "one key, by storage", true},
		"subscriptions":    {func(in *Input) { in.Subscriptions = 3 }, "messaging units", true},
		"regions":          {func(in *Input) { in.Regions = 2 }, "storage", true},
		"duplicate window": {func(in *Input) { in.DuplicateWindow *= 2 }, "ids in the duplicate window", true},
		"takeover":         {func(in *Input) { in.Takeover /= 4 }, "lease traffic", true},
		"outage":           {func(in *Input) { in.Outage *= 2 }, "catch-up time", true},
		"headroom":         {func(in *Input) { in.Headroom = 2 }, "partitions by throughput", true},
		"change units":     {func(in *Input) { in.ChangeUnits = 40 }, "one key, by throughput", false},
		"relay rate":       {func(in *Input) { in.RelayRate *= 4 }, "relays", false},
		"topic size":       {func(in *Input) { in.TopicGB = 80 }, "time until a topic is full", true},
		"unit price":       {func(in *Input) { in.UnitPrice *= 2 }, "cost a month", true},
	} {
		t.Run(name, func(t *testing.T) {
			before := planOf(t, 20_000, base).line(t, c.line)
			after := planOf(t, 20_000, func(in *Input) { base(in); c.edit(in) }).line(t, c.line)
			if *after.Value == *before.Value || *after.Value > *before.Value != c.up {
				t.Errorf("%s: %s, before %s", c.line, after.Text, before.Text)
			}
		})
	}
}

func TestUnknownIsNotZero(t *testing.T) {
	busy := func(in *Input) { in.RelayRate = 10 } // more relays than partitions
	for name, p := range map[string]*Plan{"storage of aggregates": planOf(t, 200, nil), "catch-up time": planOf(t, 20_000, busy), "Standard namespaces instead": planOf(t, 1, func(in *Input) { in.EventBytes = 300_000 })} {
		if l := p.line(t, name); l.Value != nil || l.Text != "unknown" {
			t.Errorf("%s: %v %q, want unknown", name, l.Value, l.Text)
		}
	}
}

// The results stay finite and positive at the limits of the input.
func TestLinesAreNumbersWithAnAssumption(t *testing.T) {
	most := func(in *Input) {
		*in = Input{
			Changes: 1e9, Peak: 1000, Events: 99, EventBytes: 2 << 20, StateBytes: 2 << 20, Aggregates: 1e15, Subscriptions: 2000, Regions: 100, TTL: Duration(87600 * time.Hour),
			DuplicateWindow: Duration(7 * 24 * time.Hour), Takeover: Duration(time.Hour), Outage: Duration(90 * 24 * time.Hour), Headroom: 10, ChangeUnits: 1e6, RelayRate: 1, TopicGB: 80, UnitPrice: 1e6, PollBusy: Duration(time.Hour),
		}
	}
	used := map[*Figure]bool{}
	for _, p := range []*Plan{planOf(t, 0.001, nil), planOf(t, 1e6, func(in *Input) { in.Aggregates = 1 }), planOf(t, 1e9, most), planOf(t, 1, func(in *Input) { in.EventBytes = 300_000 })} {
		for _, l := range p.Lines {
			if l.Value != nil && !(*l.Value > 0 && *l.Value < math.Inf(1)) && !strings.HasPrefix(l.Name, "saved") {
				t.Errorf("%v changes: %s is %v", p.Input.Changes, l.Name, *l.Value)
			}
			if l.Assumption == "" || l.Text == "" {
				t.Errorf("%s has no assumption or text", l.Name)
			}
			for _, f := range l.Figures {
				used[f] = true
			}
		}
	}
	for _, f := range Figures() {
		if !used[f] {
			t.Errorf("no line names the figure %s", f)
		}
	}
}

// The document has every figure with its source and its date.
func TestTheTableOfSourcesIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../../cmd/feedbox/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Figures() {
		value, _, _ := strings.Cut(f.String(), " "+f.What)
		source := "`" + f.Source + "`"
		if page, ok := strings.CutPrefix(f.Source, "https://"); ok {
			source = fmt.Sprintf("[%s](%s)", page[strings.LastIndex(strings.TrimSuffix(page, "/"), "/")+1:], f.Source)
		}
		if row := fmt.Sprintf("| %s | %s | %s | %s |\n", f.What, value, source, f.Date); !strings.Contains(string(text), row) {
			t.Errorf("cmd/feedbox/README.md lacks the row\n%s", row)
		}
	}
}

func TestDurationsTakeDays(t *testing.T) {
	for text, want := range map[string]string{"10d": "240h", "36h": "36h", "1.5d": "36h", "20s": "20s", "1m0s": "1m", "1h30m": "1h30m"} {
		var d Duration
		if err := d.Set(text); err != nil || d.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "d", "ten days", "NaNd", "1e9d", "5"} {
		if err := new(Duration).Set(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// The default pause between reads is short because the reads that it costs are a twentieth of all request
// units.
func TestPollBusyTradesLatencyForReads(t *testing.T) {
	for pause, want := range map[time.Duration]string{time.Millisecond: "1,000 /s 5.22 % 0.5 ms", 10 * time.Millisecond: "900 /s 4.769 % 5 ms", 100 * time.Millisecond: "163.6 /s 1.279 % 50 ms"} {
		p := planOf(t, 1000, func(in *Input) { in.PollBusy = Duration(pause) })
		got := p.line(t, "feed reads").Text + " " + p.line(t, "share of leases and polls").Text + " " + p.line(t, "delay by polling").Text
		if got != want {
			t.Errorf("%s: %s, want %s", pause, got, want)
		}
	}
}

// A range with few changes is read often after each of them, and no relay reads more than its rate.
func TestReadsThatFindNothingArePlanned(t *testing.T) {
	for name, c := range map[string]struct {
		changes float64
		edit    func(*Input)
		want    string
	}{
		"a change a second":               {1, nil, "50 /s"},
		"a change in ten seconds":         {0.1, nil, "28.03 /s"},
		"a change in a hundred seconds":   {0.01, nil, "4.674 /s"},
		"two relays with 2,100 ranges":    {10, func(in *Input) { in.Aggregates = 1e11 }, "2,010 /s"},
		"changes closer than two reads":   {100, nil, "100 /s"},
		"a pause longer than the changes": {10, func(in *Input) { in.PollBusy = Duration(time.Second) }, "0.9901 /s"},
	} {
		if got := planOf(t, c.changes, c.edit).line(t, "feed reads").Text; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The table "Operating at scale" shows what the planner says.
func TestOperatingAtScaleShowsThePlan(t *testing.T) {
	text, err := os.ReadFile("../../../cmd/feedbox/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("### Operating at scale"))
	rows := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if rows > 0 && !strings.HasPrefix(line, "|") {
			break
		}
		if len(cells) != 4 {
			continue
		}
		rows++
		for i, changes := range []float64{1e3, 1e5, 1e6} {
			if got := planOf(t, changes, during(24*time.Hour)).line(t, cells[0]).Text; got != cells[i+1] {
				t.Errorf("%s at %.0f changes/s: the table says %s, the plan %s", cells[0], changes, cells[i+1], got)
			}
		}
	}
	if rows < 12 {
		t.Errorf("%d rows", rows)
	}
}

func TestInfiniteInputIsNamed(t *testing.T) {
	in := Defaults()
	for _, in.Changes = range []float64{math.Inf(1), math.Inf(-1)} {
		if _, err := New(in); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("--changes %g: give", in.Changes)) {
			t.Errorf("%g: %v", in.Changes, err)
		}
	}
}

// A container has at most a million request units a second, also if the plan needs a fraction more: the steps of
// autoscale would round it up to 1,001,000.
func TestNoContainerIsAboveItsLimit(t *testing.T) {
	needs := func(changes float64) *Plan { return planOf(t, changes, during(time.Hour)) }
	for limit := 1e6; limit <= 3e6; limit += 1e6 {
		low, high := 1e4, 1e6
		for range 100 {
			if middle := (low + high) / 2; needs(middle).RequestUnits <= limit+0.5 {
				low = middle
			} else {
				high = middle
			}
		}
		p := needs(low)
		if p.RequestUnits <= limit || p.RequestUnits > limit+1 {
			t.Fatalf("%v RU/s, want a fraction more than %v", p.RequestUnits, limit)
		}
		if want := int(limit/1e6) + 1; p.Containers != want || *p.line(t, "containers").Value != float64(want) {
			t.Errorf("%d containers for %v RU/s, want %d", p.Containers, p.RequestUnits, want)
		}
		p.RatePartitions, p.StorePartitions, p.MessagingUnits = 100, 1, 1 // a deployment has at most 300
		text, err := p.BicepParam()
		if err != nil {
			t.Fatal(err)
		}
		each := thousands(p.RequestUnits / float64(p.Containers))
		if each > 1e6 || !strings.Contains(text, fmt.Sprintf("param dataThroughput = %d\n", each)) {
			t.Errorf("want at most 1,000,000 RU/s for each container:\n%s", text)
		}
	}
	p := needs(1000)
	p.LeaseUnits = 1.0005e6
	if text, err := p.BicepParam(); err == nil || !strings.Contains(err.Error(), "the leases of a container need 1,001,000 RU/s") {
		t.Errorf("%v, want a refusal:\n%s", err, text)
	}
}
