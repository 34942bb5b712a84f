package monitor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"feedbox/application/relay"
)

// Dependency records the last answer of a service that this process needs. It sends no
// requests of its own. It is safe for concurrent use.
type Dependency struct {
	now func() time.Time

	mu       sync.Mutex // guards what follows
	answered time.Time  // the last answer; zero if there was none
	since    time.Time  // the first failure after it; zero if it answers
	err      error      // the last failure
}

// Note records the outcome of a use. A use that its caller cancelled says nothing about the
// service, so it is ignored.
func (d *Dependency) Note(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		d.answered, d.since, d.err = d.now(), time.Time{}, nil
	case d.since.IsZero():
		d.since, d.err = d.now(), err
	default:
		d.err = err
	}
}

// Batch records the outcome of a batch of the publisher. A refused message is an answer.
func (d *Dependency) Batch(r relay.BatchReport) {
	if r.Err != nil && relay.ClassOf(r.Err) == relay.Refused {
		d.Note(nil)
		return
	}
	d.Note(r.Err)
}

// Failing reports whether the last use failed.
func (d *Dependency) Failing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.since.IsZero()
}

// State is the condition of a dependency.
type State struct {
	Status   string    // ok, failing, or unknown before its first use
	Answered time.Time // its last answer
	Failing  time.Time // the first failure since; zero if it answers
	Error    string    // the last failure, in one line
}

func (d *Dependency) state() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := State{Status: "unknown", Answered: d.answered, Failing: d.since}
	switch {
	case !d.since.IsZero():
		s.Status, s.Error = "failing", strings.Join(strings.Fields(d.err.Error()), " ")
	case !d.answered.IsZero():
		s.Status = "ok"
	}
	return s
}

// Dependencies are all of a process, by their names in metrics and probes.
type Dependencies map[string]*Dependency

// NewDependencies returns those of these names, none of them used yet.
func NewDependencies(now func() time.Time, names ...string) Dependencies {
	all := make(Dependencies, len(names))
	for _, name := range names {
		all[name] = &Dependency{now: now}
	}
	return all
}

// States returns the condition of each dependency, by its name.
func (d Dependencies) States() map[string]State {
	states := make(map[string]State, len(d))
	for name, one := range d {
		states[name] = one.state()
	}
	return states
}

// Register adds a gauge that is 1 while a dependency answers and 0 while it fails. Several
// of one process may register; each tells of its own.
func (d Dependencies) Register(meters metric.MeterProvider) error {
	meter := meters.Meter("feedbox/dependencies")
	gauge, err := meter.Int64ObservableGauge("outbox.dependency.up", metric.WithUnit("{dependency}"),
		metric.WithDescription("1 if the last use of the service succeeded, 0 if it failed"))
	if err == nil {
		// A callback given with the instrument would be that of the first alone.
		_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
			for name, one := range d {
				up := int64(1)
				if one.Failing() {
					up = 0
				}
				o.ObserveInt64(gauge, up, metric.WithAttributes(attribute.String("dependency", name)))
			}
			return nil
		}, gauge)
	}
	if err != nil {
		return fmt.Errorf("metrics of dependencies: %w", err)
	}
	return nil
}
