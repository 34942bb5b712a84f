package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"feedbox/infrastructure/wiring"
	"feedbox/tests/bench/measure"
)

// series is one dimension in which the system grows.
type series struct {
	name   string
	limit  bool // the cost of an event must not grow
	at     []string
	shapes []Shape
}

// dimensions returns the series. The number of events is the same for all, so that the cost
// of the start has the same share.
func dimensions(events int) []series {
	shape := func(change func(s *Shape)) Shape {
		s := Shape{Contacts: events / 10, Commits: 10, Events: 1, Size: 512, Partitions: 4, Relays: 1, Pack: true, EventsOnly: true}
		change(&s)
		return s
	}
	contacts, ranges, relays := series{name: "growth, contacts", limit: true}, series{name: "growth, ranges", limit: true}, series{name: "growth, relays", limit: true}
	both := series{name: "growth, contacts and ranges", limit: true}
	perKey, packed, size := series{name: "growth, a batch per key, events of a key together"}, series{name: "growth, packed, events of a key together"}, series{name: "growth, bytes of an event"}
	add := func(to *series, at string, s Shape) { to.at, to.shapes = append(to.at, at), append(to.shapes, s) }
	for _, n := range []int{100, 10, 1} {
		add(&contacts, fmt.Sprint(events/n), shape(func(s *Shape) { s.Contacts, s.Commits = events/n, n }))
	}
	for _, n := range []int{1, 4, 16, 64} {
		add(&ranges, fmt.Sprint(n), shape(func(s *Shape) { s.Partitions = n }))
	}
	add(&both, fmt.Sprintf("%d and 1", events/100), shape(func(s *Shape) { s.Contacts, s.Commits, s.Partitions = events/100, 100, 1 }))
	add(&both, fmt.Sprintf("%d and 64", events), shape(func(s *Shape) { s.Contacts, s.Commits, s.Partitions = events, 1, 64 }))
	for _, n := range []int{1, 2, 4, 8} {
		add(&relays, fmt.Sprint(n), shape(func(s *Shape) { s.Relays, s.Partitions = n, 8 }))
	}
	for _, n := range []int{10, 5, 2, 1} {
		add(&perKey, fmt.Sprint(n), shape(func(s *Shape) { s.Events, s.Commits, s.Pack = n, 10/n, false }))
		add(&packed, fmt.Sprint(n), shape(func(s *Shape) { s.Events, s.Commits = n, 10/n }))
	}
	for _, n := range []int{256, 512, 4096, 16384} {
		add(&size, fmt.Sprint(n), shape(func(s *Shape) { s.Size, s.Contacts = n, max(1, min(events, 40_000_000/n)/10) }))
	}
	return []series{contacts, ranges, both, relays, perKey, packed, size}
}

// Growth measures the processor time per event, of everything but a consumer, as the system
// grows. Each figure is the minimum of some turns, because disturbances only increase it.
func Growth(ctx context.Context, r *measure.Run) error { return OnlyGrowth("")(ctx, r) }

// OnlyGrowth measures the dimensions with name in their names.
func OnlyGrowth(name string) measure.Stage {
	return func(ctx context.Context, r *measure.Run) error {
		return growth(ctx, r, name)
	}
}

func growth(ctx context.Context, r *measure.Run, only string) error {
	defer debug.SetGCPercent(debug.SetGCPercent(wiring.GarbagePercent))
	events, turns := 100_000, 3
	if r.Quick {
		events, turns = 2000, 1
	}
	for _, d := range dimensions(events) {
		if !strings.Contains(d.name, only) {
			continue
		}
		if last := len(d.at) - 1; r.Quick {
			d.at, d.shapes = []string{d.at[0], d.at[last]}, []Shape{d.shapes[0], d.shapes[last]}
		}
		var points []measure.Point
		for i, s := range d.shapes {
			r.Step("%s %s", d.name, d.at[i])
			cost, err := cheapest(ctx, s, turns)
			if err != nil {
				return fmt.Errorf("%s %s: %w", d.name, d.at[i], err)
			}
			points = append(points, measure.Point{At: d.at[i], Cost: measure.Micros(cost)})
		}
		figures := measure.Growth(d.name, "µs", points...)
		if !d.limit {
			for i := range figures {
				figures[i].Goal = nil
			}
		}
		r.Add(figures...)
	}
	if only == "" || only == fleetName {
		return fleet(ctx, r)
	}
	return nil
}

// cheapest returns the minimum processor time per event of some turns.
func cheapest(ctx context.Context, s Shape, turns int) (best time.Duration, err error) {
	st, err := openBacklog(ctx, s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	for i := range turns + 1 {
		sample, err := st.relayAlone(ctx)
		if err != nil {
			return 0, err
		}
		if cost := sample.PerOperation(); i == 1 || cost < best { // the first one warms up
			best = cost
		}
	}
	return best, nil
}
