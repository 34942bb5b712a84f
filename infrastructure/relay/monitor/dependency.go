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

	mu       sync.Mutex           // guards what follows
	answered time.Time            // the last answer; zero if there was none
	since    time.Time            // the first failure after it; zero if it answers
	failed   time.Time            // the last failure
	err      error                // of the last failure
	shards   map[string]time.Time // last failure of each shard that has not answered since
}

// Note records the outcome of a use. A use that its caller cancelled says nothing about the
// service, so it is ignored.
func (d *Dependency) Note(err error) { d.note("", err) }

// note is Note for one shard of a service. The service answers only if all of its shards do, because
// otherwise the answers of one would hide the failure of another. A failure of a shard that was not
// used since counts no longer: another process has its keys.
func (d *Dependency) note(shard string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.shards, shard)
		for _, failed := range d.shards {
			if d.now().Sub(failed) <= abandoned {
				return
			}
		}
		d.answered, d.since, d.err = d.now(), time.Time{}, nil
		return
	}
	d.failed, d.err = d.now(), err
	if shard != "" {
		if d.shards == nil {
			d.shards = map[string]time.Time{}
		}
		d.shards[shard] = d.failed
	}
	if d.since.IsZero() {
		d.since = d.failed
	}
}

// Batch records the outcome of a batch of the publisher. The broker works if it accepted a
// message, or refused one for a fault of the message alone. An ambiguous refusal may be a fault of
// the broker's set-up, so it proves neither; Pauses records it if the relay decides that it is. A
// message that the publisher itself refused was not sent. An unclassified error is the end of the
// caller's context, for example of the lease.
func (d *Dependency) Batch(r relay.BatchReport) {
	e, classified := errors.AsType[*relay.Error](r.Err)
	refused := classified && e.Class == relay.Refused
	switch {
	case r.Err == nil, refused && (r.Accepted > 0 || r.Messages > 0 && !e.Ambiguous):
		d.note(r.Shard, nil)
	case classified && !refused:
		d.note(r.Shard, r.Err)
	}
}

// Pauses adds to the relay's hooks that a pause of all sends is a failure of the broker.
func (d *Dependency) Pauses(next relay.Observer) relay.Observer {
	paused := next.Paused
	next.Paused = func(ctx context.Context, p relay.Pause) {
		d.note(p.Shard, p.Err)
		paused(ctx, p)
	}
	return next
}

// NoteOf returns Note for one container of a store, which is a shard; see note.
func (d *Dependency) NoteOf(container string) func(err error) {
	return func(err error) { d.note(container, err) }
}

// Failing reports whether the last use failed.
func (d *Dependency) Failing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.since.IsZero()
}

// FailingOf returns Failing for one container of a store; "" is the store.
func (d *Dependency) FailingOf(container string) func() bool {
	if container == "" {
		return d.Failing
	}
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, failing := d.shards[container]
		return failing
	}
}

// abandoned is the time after the last use from which a failure says nothing. A failing use is
// repeated within seconds, or within a minute if nothing answers, unless the process has stopped
// using the service, as a relay that has lost its ranges.
const abandoned = 2 * time.Minute

// State is the condition of a dependency.
type State struct {
	Status   string    // ok, failing, or unknown: not used yet, or not since a failure
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
		s.Error = strings.Join(strings.Fields(d.err.Error()), " ")
		if d.now().Sub(d.failed) <= abandoned {
			s.Status = "failing"
		}
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

// Register adds a gauge that is 1 while a dependency answers and 0 while it fails. A dependency
// of unknown state is omitted. Several of one process may
// register; each reports its own.
func (d Dependencies) Register(meters metric.MeterProvider) error {
	meter := meters.Meter("feedbox/dependencies")
	gauge, err := meter.Int64ObservableGauge("outbox.dependency.up", metric.WithUnit("{dependency}"),
		metric.WithDescription("1 if the last use of the service succeeded, 0 if it failed; absent if it was not used, or not since a failure"))
	if err == nil {
		// A callback given with the instrument would be that of the first alone.
		_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
			for name, state := range d.States() {
				up, known := map[string]int64{"ok": 1, "failing": 0}[state.Status]
				if known {
					o.ObserveInt64(gauge, up, metric.WithAttributes(attribute.String("dependency", name)))
				}
			}
			return nil
		}, gauge)
	}
	if err != nil {
		return fmt.Errorf("metrics of dependencies: %w", err)
	}
	return nil
}
