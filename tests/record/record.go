// Package record writes the results of fault tests. The records of a run become the table
// of tests/faults/README.md (go run ./tests/reliability). The package imports only the
// standard library, so that all tests can use it. It is safe for concurrent use.
package record

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Result is the result of a fault test.
type Result struct {
	Fault      string `json:"fault"`      // number in the list of faults: F1 ... F24
	Name       string `json:"name"`       // the fault in a few words
	Test       string `json:"test"`       // filled in by Write: package-relative name of the test
	Seed       uint64 `json:"seed"`       // 0 if nothing was random
	Injections int64  `json:"injections"` // number of injected faults
	Of         int64  `json:"of"`         // the full count, as `make nightly` runs it
	Events     int64  `json:"events"`     // events committed meanwhile
	// DuplicatesSent counts repeated sends of an event, DuplicatesSeen those that a
	// consumer received.
	DuplicatesSent  int64 `json:"duplicatesSent"`
	DuplicatesSeen  int64 `json:"duplicatesSeen"`
	OrderViolations int64 `json:"orderViolations"`
	Lost            int64 `json:"lost"`
	// TakeoverP50 and TakeoverP99 are seconds from a fault to the first event sent by
	// the successor; Recovery is seconds until everything had arrived. 0: not measured.
	TakeoverP50 float64 `json:"takeoverP50"`
	TakeoverP99 float64 `json:"takeoverP99"`
	Recovery    float64 `json:"recovery"`
	Simulated   float64 `json:"simulated"` // hours of virtual time, 0 for a test in real time
	Note        string  `json:"note"`      // a remark, in one sentence
	Failed      bool    `json:"failed"`    // filled in by Write
	Commit      string  `json:"commit"`    // filled in by Write: of the tree that was tested
}

// Write logs r when the test ends, and writes it into the directory named by
// FEEDBOX_RESULTS, which it creates, if that is set. The file is named after the fault,
// the folder of the test and the test.
func Write(t testing.TB, r Result) {
	t.Helper()
	r.Test, r.Commit = t.Name(), commit()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	name := strings.NewReplacer("/", "_", " ", "_").Replace(r.Fault+"-"+filepath.Base(folder)+"-"+r.Test) + ".json"
	t.Cleanup(func() {
		r.Failed = t.Failed()
		data, err := json.Marshal(r)
		if err != nil {
			t.Errorf("record the result of %s: %v", r.Test, err)
			return
		}
		t.Logf("result: %s", data)
		dir := os.Getenv("FEEDBOX_RESULTS")
		if dir == "" {
			return
		}
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), append(data, '\n'), 0o600)); err != nil {
			t.Errorf("record the result of %s: %v", r.Test, err)
		}
	})
}

// commit is the short hash of the tree's commit, with a suffix if files differ from it, or
// "" outside of a clone.
var commit = sync.OnceValue(func() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
})
