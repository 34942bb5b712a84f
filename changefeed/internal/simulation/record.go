package simulation

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Result is what a fault test found, in the format that RELIABILITY.md is made of.
// This tree is imported by strangers and knows nothing of the tests around it, so
// it has its own.
type Result struct {
	Fault           string  `json:"fault"` // number in the list of faults
	Name            string  `json:"name"`  // a few words on what was done
	Test            string  `json:"test"`  // filled in by Record
	Seed            uint64  `json:"seed"`
	Injections      int64   `json:"injections"` // how often the fault struck
	Of              int64   `json:"of"`         // the full count, as a nightly run has it
	Events          int64   `json:"events"`     // changes written meanwhile
	DuplicatesSent  int64   `json:"duplicatesSent"`
	DuplicatesSeen  int64   `json:"duplicatesSeen"`
	OrderViolations int64   `json:"orderViolations"`
	Lost            int64   `json:"lost"`
	TakeoverP50     float64 `json:"takeoverP50"` // seconds, 0 if not measured, as below
	TakeoverP99     float64 `json:"takeoverP99"`
	Recovery        float64 `json:"recovery"`
	Simulated       float64 `json:"simulated"` // hours
	Note            string  `json:"note"`
	Failed          bool    `json:"failed"` // filled in by Record
	Commit          string  `json:"commit"` // filled in by Record
}

// TB is what Record needs of a test.
type TB interface {
	Helper()
	Name() string
	Cleanup(f func())
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Record logs r when the test ends, and writes it into the directory named by
// FEEDBOX_RESULTS if there is one.
func Record(t TB, r Result) {
	t.Helper()
	r.Test, r.Commit = t.Name(), commit()
	t.Cleanup(func() {
		r.Failed = t.Failed()
		data, err := json.Marshal(r)
		if err != nil {
			t.Errorf("record %s: %v", r.Test, err)
			return
		}
		t.Logf("result: %s", data)
		dir := os.Getenv("FEEDBOX_RESULTS") //nolint:forbidigo // only tests call it
		if dir == "" {
			return
		}
		name := strings.NewReplacer("/", "_", " ", "_").Replace(r.Fault+"-changefeed-"+r.Test) + ".json"
		if err := os.WriteFile(filepath.Join(dir, name), append(data, '\n'), 0o600); err != nil {
			t.Errorf("record %s: %v", r.Test, err)
		}
	})
}

// commit is the short hash of the tree's commit, marked if files differ from it;
// empty outside of a clone.
var commit = sync.OnceValue(func() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
})

// Result is the report of any number of runs as a result.
func (r *Report) Result(fault, name string, of int) Result {
	result := Result{
		Fault: fault, Name: name, Seed: r.Seed, Injections: int64(r.Runs), Of: int64(of), Events: int64(r.Written),
		DuplicatesSent: int64(r.Redelivered), Recovery: r.Owned.Seconds(), Simulated: r.Simulated.Hours(),
	}
	for _, f := range r.Faults {
		switch f[:2] {
		case "V1", "V4":
			result.Lost++
		case "V2", "V3":
			result.OrderViolations++
		}
	}
	result.Note = r.String()
	return result
}
