package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
)

// Stage measures one part of the system.
type Stage func(ctx context.Context, r *Run) error

// Run is one run of one stage.
type Run struct {
	// Quick asks for a run of a few seconds, which checks that the stage works and gives
	// rough figures.
	Quick bool

	stage string
	sink  Sink
	names map[string]bool
	err   error

	steps sync.Mutex // guards calls of sink.Step
}

// Sink receives the progress and the figures of a run.
type Sink interface {
	// Step is called with the current step.
	Step(what string)
	// Figure is called with each new figure.
	Figure(f Figure)
}

// NewRun returns a run of the named stage.
func NewRun(stage string, sink Sink) *Run {
	return &Run{stage: stage, sink: sink, names: make(map[string]bool)}
}

// Step reports the current step. It is safe for concurrent use.
func (r *Run) Step(format string, args ...any) {
	r.steps.Lock()
	defer r.steps.Unlock()
	r.sink.Step(fmt.Sprintf(format, args...))
}

// Add adds figures. A duplicate name or a value that is not a number makes the run fail at
// its end.
func (r *Run) Add(figures ...Figure) {
	for _, f := range figures {
		f.Stage = r.stage
		switch {
		case r.names[f.Name]:
			r.err = errors.Join(r.err, fmt.Errorf("the figure %q is there twice", f.Name))
			continue
		case !finite(f.Value) || !finite(f.Ratio):
			r.err = errors.Join(r.err, fmt.Errorf("the figure %q is not a number", f.Name))
			continue
		}
		r.names[f.Name] = true
		r.sink.Figure(f)
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Err returns the fault in the added figures.
func (r *Run) Err() error { return r.err }
