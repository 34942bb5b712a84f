package monitor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"feedbox/application/relay"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/store/cosmos"
)

// Dependency remembers how a service that this process needs last answered. It asks
// nothing by itself. It is a policy of clients of Azure, and safe for concurrent use.
type Dependency struct {
	now func() time.Time

	mu       sync.Mutex // guards what follows
	answered time.Time  // the last answer; zero if there was none
	since    time.Time  // the first failure after it; zero if it answers
	err      error      // the last failure
}

var _ policy.Policy = (*Dependency)(nil)

// Note is told of each use. What the caller gave up tells nothing.
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

// Do implements policy.Policy: no answer, one of the server's own failures or a refused
// identity is a failure; everything else is an answer.
func (d *Dependency) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	switch {
	case err != nil:
		d.Note(err)
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		d.Note(fmt.Errorf("the service answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	default:
		d.Note(nil)
	}
	return resp, err
}

// Batch is told of each batch of the publisher. A message that is refused is an answer.
func (d *Dependency) Batch(r relay.BatchReport) {
	if r.Err != nil && relay.ClassOf(r.Err) == relay.Refused {
		d.Note(nil)
		return
	}
	d.Note(r.Err)
}

// Failing tells whether the last use failed.
func (d *Dependency) Failing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.since.IsZero()
}

// state is for the body of /readyz.
func (d *Dependency) state() httpapi.Dependency {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := httpapi.Dependency{Status: "unknown", Answered: d.answered, Failing: d.since}
	switch {
	case !d.since.IsZero():
		s.Status, s.Error = "failing", cosmos.Brief(d.err)
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

// States are for the body of /readyz.
func (d Dependencies) States() map[string]httpapi.Dependency {
	states := make(map[string]httpapi.Dependency, len(d))
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
