package api

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"feedbox/infrastructure/wiring"
	"feedbox/tests/bench/measure"
)

var _, _ measure.Stage = Measure, Growth

// The sizes of a measurement.
const (
	clients  = 16 // at the same time
	contacts = 256
)

// goal is the wanted share of the bare loop's rate.
const goal = 0.85

// Measure measures the API and the bare loop, with an emulator on disk and with one in
// memory.
func Measure(ctx context.Context, r *measure.Run) error {
	for _, at := range []store{disk, memory} {
		if err := measureAt(ctx, r, at); err != nil {
			return err
		}
	}
	return nil
}

func measureAt(ctx context.Context, r *measure.Run, at store) (err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(wiring.GarbagePercent)) // for floors and API alike
	rounds, length := 30, 300*time.Millisecond
	if r.Quick {
		rounds, length = 4, 100*time.Millisecond
	}
	r.Step("%s: storing %d contacts", at, contacts)
	w, err := newWorld(ctx, at, contacts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	r.Step("%s: warming up", at)
	if _, err := measure.Alternate(ctx, 1, w.bare(2*length), w.served(2*length), w.api(2*length)); err != nil {
		return err
	}
	turn := 0
	told := func(side measure.Turn) measure.Turn {
		return func(ctx context.Context) (measure.Sample, error) {
			turn++
			r.Step("%s: turn %d of %d", at, turn, 3*rounds)
			return side(ctx)
		}
	}
	sums, err := measure.Alternate(ctx, rounds, told(w.bare(length)), told(w.served(length)), told(w.api(length)))
	if err != nil {
		return err
	}
	bare, served, api := sums[0], sums[1], sums[2]
	name := func(what string) string { return what + ", " + string(at) }
	r.Add(
		measure.Rate(name("updates"), api.Rate(), "updates/s").OverRounds(api, bare).Using(api.PerOperation(), bare.PerOperation()).
			Wants(measure.RatioAtLeast(goal)).Noting("%d clients; floor: the same calls without an HTTP server; CPU with emulator and load", clients),
		measure.Cost(name("CPU of an update"), measure.Micros(api.PerOperation()), "µs").Over(measure.Micros(bare.PerOperation())).
			Noting("of all: API, emulator and load"),
		measure.Rate(name("updates beside net/http"), api.Rate(), "updates/s").OverRounds(api, served).Using(api.PerOperation(), served.PerOperation()).
			Noting("floor: the same calls in a net/http handler without checks, log or metrics"),
		measure.Rate(name("the loop behind net/http"), served.Rate(), "updates/s").OverRounds(served, bare).Using(served.PerOperation(), bare.PerOperation()).
			Noting("what the first ratio could be at most"),
		measure.Cost(name("update p50"), measure.Millis(api.Latency(50)), "ms").Over(measure.Millis(bare.Latency(50))),
		measure.Cost(name("update p99"), measure.Millis(api.Latency(99)), "ms").Over(measure.Millis(bare.Latency(99))),
	)
	return w.verify(ctx)
}

// Growth measures the cost of an update with a growing number of stored contacts.
func Growth(ctx context.Context, r *measure.Run) error {
	sizes, rounds, length := []size{{"1k", 1_000}, {"10k", 10_000}, {"100k", 100_000}}, 10, 500*time.Millisecond
	if r.Quick {
		sizes, rounds, length = []size{{"100", 100}, {"1k", 1_000}}, 2, 100*time.Millisecond
	}
	var closers []func() error
	defer func() {
		for _, closeWorld := range closers {
			_ = closeWorld() // the figures are complete
		}
	}()
	turns := make([]measure.Turn, 0, len(sizes))
	for _, s := range sizes {
		r.Step("storing %s contacts", s.name)
		w, err := newWorld(ctx, memory, s.contacts)
		if err != nil {
			return err
		}
		closers = append(closers, w.close)
		turns = append(turns, w.api(length))
	}
	r.Step("updating, %d rounds", rounds)
	if _, err := measure.Alternate(ctx, 2, turns...); err != nil { // warm-up
		return err
	}
	sums, err := measure.Alternate(ctx, rounds, turns...)
	if err != nil {
		return err
	}
	points := make([]measure.Point, len(sizes))
	for i, s := range sizes {
		points[i] = measure.Point{At: s.name, Cost: measure.Micros(sums[i].PerOperation())}
	}
	r.Add(measure.Growth("update, contacts", "µs CPU/update", points...)...)
	return nil
}

type size struct {
	name     string
	contacts int
}
