package certify

import (
	"bytes"
	_ "embed" // report.html
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/lab/wire"
)

// Report is the result of a run. It contains no secret and no name of the account: see Write.
type Report struct {
	Format   int               `json:"format"` // 1
	Run      string            `json:"run"`
	Began    time.Time         `json:"began"`
	Took     time.Duration     `json:"tookNs"`
	Complete bool              `json:"complete"`
	Ended    string            `json:"ended,omitempty"` // why it is not complete
	Emulator bool              `json:"emulator"`        // not Azure: it proves the command, not an assumption
	Versions map[string]string `json:"versions"`

	Counts     map[wire.Verdict]int `json:"counts"` // of Rows
	Rows       []Row                `json:"rows"`
	Scripts    []wire.Outcome       `json:"scripts"`
	Promises   *verify.Verdict      `json:"promises"` // null if the load was not verified
	Load       Load                 `json:"load"`
	Latencies  []Latency            `json:"latencies"`
	Operations []Operation          `json:"operations"`
	CostUSD    float64              `json:"costUSD"` // estimated
	LeftBehind string               `json:"leftBehind,omitempty"`
}

// Row is a row of UNVERIFIED.md with its verdict.
type Row struct {
	wire.Row

	Verdict  wire.Verdict   `json:"verdict"`
	Evidence []wire.Outcome `json:"evidence"`
}

// Load is what was done to the system.
type Load struct {
	Duration time.Duration `json:"durationNs"`
	Rate     float64       `json:"rate"` // changes per second
	Seed     int64         `json:"seed"`
	Changes  int           `json:"changes"` // acknowledged or of unknown outcome
	Refused  int           `json:"refused"` // 429
	Events   int           `json:"events"`
	Messages int           `json:"messages"`
	Kills    []Kill        `json:"kills"`
}

// Latency has the percentiles of a kind of call.
type Latency struct {
	Name  string        `json:"name"`
	Count int           `json:"count"`
	P50   time.Duration `json:"p50Ns"`
	P95   time.Duration `json:"p95Ns"`
	P99   time.Duration `json:"p99Ns"`
	Max   time.Duration `json:"maxNs"`
}

func latencyOf(name string, all []time.Duration) Latency {
	l := Latency{Name: name, Count: len(all)}
	if len(all) == 0 {
		return l
	}
	sorted := slices.Sorted(slices.Values(all))
	at := func(q float64) time.Duration { return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)] }
	l.P50, l.P95, l.P99, l.Max = at(0.5), at(0.95), at(0.99), sorted[len(sorted)-1]
	return l
}

func newReport(o *Options) *Report {
	now := time.Now().UTC()
	return &Report{
		Format: 1, Run: namePrefix + now.Format("20060102-150405-") + wire.RandomName(), Began: now.Truncate(time.Second), Emulator: o.Emulator, Versions: versions(o),
		Load: Load{Duration: o.Duration, Rate: o.Rate, Seed: o.Seed, Kills: []Kill{}},
	}
}

// versions returns those of this program and of the SDKs it uses.
func versions(o *Options) map[string]string {
	all := map[string]string{"Go": runtime.Version(), "Feedbox": o.Version}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range build.Deps {
			if sdk, is := strings.CutPrefix(dep.Path, "github.com/Azure/"); is {
				all[sdk] = dep.Version
			}
		}
	}
	return all
}

// finish judges the rows and adds the figures of the meters.
func (r *Report) finish(o *Options) {
	r.Took, r.Complete = time.Since(r.Began), r.Ended == ""
	r.CostUSD = o.cost(r.Took)
	outcomes := map[string]wire.Outcome{}
	for _, outcome := range r.Scripts {
		outcomes[outcome.Script] = outcome
	}
	r.Counts = map[wire.Verdict]int{}
	for _, row := range wire.Rows() {
		verdict, evidence := row.Judge(outcomes)
		r.Counts[verdict]++
		r.Rows = append(r.Rows, Row{row, verdict, evidence})
	}
	r.Operations = slices.Concat(o.Scripted.report("scripts", r.Versions), o.Served.report("contacts API", r.Versions))
}

// Good reports whether the run is complete, contradicts no row and broke no promise.
func (r *Report) Good() bool {
	return r.Complete && r.Counts[wire.Contradicted] == 0 && r.Promises != nil && r.Promises.Kept
}

//go:embed report.html
var page string

var html = template.Must(template.New("report").Funcs(template.FuncMap{
	"short": func(d time.Duration) string {
		return d.Round(max(10*time.Microsecond, d.Truncate(time.Second)/100)).String()
	},
}).Parse(page))

// Write writes the report as JSON and as HTML to a folder, and returns the names of the files. It masks
// the secrets and the hosts of the addresses in it, so that a report can be sent to others.
func (r *Report) Write(folder string, secrets, addresses []string) (files []string, err error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	for _, secret := range secrets {
		for _, form := range []string{secret, url.QueryEscape(secret)} {
			if encoded, err := json.Marshal(form); err == nil && secret != "" {
				text = bytes.ReplaceAll(text, encoded[1:len(encoded)-1], []byte("********"))
			}
		}
	}
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			text = bytes.ReplaceAll(text, []byte(u.Hostname()), []byte("HOST"))
		}
	}
	var masked Report
	var page bytes.Buffer
	if err := errors.Join(json.Unmarshal(text, &masked), html.Execute(&page, &masked)); err != nil {
		return nil, fmt.Errorf("mask the report and write it as HTML: %w", err)
	}
	name := filepath.Join(folder, r.Run)
	err = errors.Join(os.WriteFile(name+".html", page.Bytes(), 0o600), os.WriteFile(name+".json", append(text, '\n'), 0o600))
	return []string{name + ".html", name + ".json"}, err
}
