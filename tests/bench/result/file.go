package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"feedbox/tests/bench/measure"
)

// Format is the version of the file format. It is incremented when a member changes its
// meaning.
const Format = 1

// File has the results of one call of the benchmark.
type File struct {
	Format  int       `json:"format"`
	Machine Machine   `json:"machine"`
	Quick   bool      `json:"quick,omitempty"`  // the figures are rough
	Growth  bool      `json:"growth,omitempty"` // costs at growing sizes were measured
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"` // total time
	Stages  []Stage   `json:"stages"`  // in the order in which they were measured
	// Summary has the figures of all runs with their spreads. Write computes it from
	// Stages. Compare computes it again instead of reading it.
	Summary []Summary `json:"summary"`
}

// Stage has the runs of one stage.
type Stage struct {
	Name string `json:"name"`
	Runs []Run  `json:"runs"`
}

// Run is one run of a stage, in a separate process.
type Run struct {
	Figures []measure.Figure `json:"figures"`
	Seconds float64          `json:"seconds"`
	// Failure is the reason why the run did not complete.
	Failure string `json:"failure,omitempty"`
}

// Add adds a run to its stage.
func (f *File) Add(stage string, run Run) {
	for i := range f.Stages {
		if f.Stages[i].Name == stage {
			f.Stages[i].Runs = append(f.Stages[i].Runs, run)
			return
		}
	}
	f.Stages = append(f.Stages, Stage{Name: stage, Runs: []Run{run}})
}

// Failures lists the runs that failed.
func (f *File) Failures() []string {
	var failures []string
	for _, s := range f.Stages {
		for i, r := range s.Runs {
			if r.Failure != "" {
				failures = append(failures, fmt.Sprintf("%s, run %d: %s", s.Name, i+1, r.Failure))
			}
		}
	}
	return failures
}

// Write summarizes f and stores it as JSON.
func (f *File) Write(path string) error {
	f.Summary = f.Summaries()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // keeps ">=" readable
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	return os.WriteFile(path, text.Bytes(), 0o644) //nolint:gosec // everyone may read results
}

// Read reads a file that Write has stored.
func Read(path string) (*File, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var f File
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("%s is not a file of results: %w", path, err)
	}
	if f.Format != Format {
		return nil, fmt.Errorf("%s has format %d, this program reads %d: measure again", path, f.Format, Format)
	}
	return &f, nil
}
