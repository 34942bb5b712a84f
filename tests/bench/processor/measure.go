// Package processor measures the change feed processor.
//
// In virtual time: balancing, takeover, idle requests and lanes, each compared with .NET's
// processor at its defaults or with one lane. .NET's figures are calculated from its code,
// not measured. Virtual time needs a testing/synctest bubble, which only tests have. So these
// figures come from the tests of this package: Measure runs them with go test, and they write
// their figures to the file in FEEDBOX_BENCH_FIGURES. Without it they only run briefly, to
// check that they work.
//
// In real time: the processor time per document, compared with a loop that only reads the
// feed, and its growth with ranges and hosts.
package processor

import (
	"context"
	"errors"
	"fmt"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/tests/bench/measure"
)

var _, _ measure.Stage = Measure, Growth

// sizes has the numbers of documents that a run reads.
type sizes struct {
	rounds    int
	shelf     int // documents of a feed without cost
	container int // documents of the emulator's container
}

func sizesOf(r *measure.Run) sizes {
	if r.Quick {
		return sizes{rounds: 1, shelf: 20_000, container: 2_000}
	}
	return sizes{rounds: 10, shelf: 200_000, container: 50_000}
}

// shapes lists processors on a feed without cost.
var shapes = []struct {
	name                 string
	ranges, hosts, lanes int
}{
	{"a feed that costs nothing, 1 range", 1, 1, 1},
	{"the same, 16 lanes", 1, 1, 16},
	{"the same, 64 ranges", 64, 1, 1},
	{"the same, 64 ranges, 8 hosts", 64, 8, 1},
}

// Measure measures in virtual time, then the cost of a document.
func Measure(ctx context.Context, r *measure.Run) error {
	if err := virtual(ctx, r); err != nil {
		return err
	}
	size := sizesOf(r)
	for _, shape := range shapes {
		r.Step("%s, %d rounds", shape.name, size.rounds)
		under, over, err := onShelf(ctx, size, shape.ranges, shape.hosts, shape.lanes)
		if err != nil {
			return err
		}
		r.Add(cost(shape.name, under, over))
	}
	r.Step("azcosmos and the emulator, %d rounds", size.rounds)
	under, over, err := onEmulator(ctx, size, 1)
	if err != nil {
		return err
	}
	r.Add(cost("azcosmos and the emulator, 1 range", under, over).
		Noting("all of it in one process; the floor decodes pages through the SDK, the processor does not"))
	return nil
}

// Growth measures the cost of a document with a growing number of ranges.
func Growth(ctx context.Context, r *measure.Run) error {
	size := sizesOf(r)
	for name, cost := range map[string]func(ranges int) (measure.Sample, error){
		"a feed that costs nothing, ranges": func(ranges int) (measure.Sample, error) {
			_, over, err := onShelf(ctx, size, ranges, 1, 1)
			return over, err
		},
		"azcosmos and the emulator, ranges": func(ranges int) (measure.Sample, error) {
			_, over, err := onEmulator(ctx, size, ranges)
			return over, err
		},
	} {
		var points []measure.Point
		for _, ranges := range []int{1, 8, 64} {
			r.Step("%s: %d", name, ranges)
			sample, err := cost(ranges)
			if err != nil {
				return err
			}
			points = append(points, measure.Point{At: fmt.Sprint(ranges), Cost: measure.Micros(sample.PerOperation())})
		}
		r.Add(measure.Growth(name, "µs CPU/100 documents", points...)...)
	}
	return nil
}

func cost(name string, under, over measure.Sample) measure.Figure {
	return measure.Cost(name, measure.Micros(over.PerOperation()), "µs CPU/100 documents").Over(measure.Micros(under.PerOperation())).
		Using(over.PerOperation(), under.PerOperation()).Noting("%.0f documents/s, floor %.0f; the floor only reads", page*over.Rate(), page*under.Rate())
}

// onShelf measures the floor and the processor in turns, on a feed and a lease store almost
// without cost.
func onShelf(ctx context.Context, size sizes, ranges, hosts, lanes int) (under, over measure.Sample, err error) {
	feed, err := newShelf(ctx, ranges, size.shelf)
	if err != nil {
		return under, over, err
	}
	return byTurns(ctx, size.rounds,
		func(ctx context.Context) (measure.Sample, error) { return readAll(ctx, feed, size.shelf) },
		func(ctx context.Context) (measure.Sample, error) {
			store := memstore.New(nil)
			return drain(ctx, feed, store, hosts, size.shelf, changefeed.Options{Lanes: lanes})
		})
}

// onEmulator measures a bare ReadChangeFeed loop and the processor in turns, both through
// azcosmos on the emulator in this process, which is part of both figures.
func onEmulator(ctx context.Context, size sizes, ranges int) (under, over measure.Sample, err error) {
	srv, err := cosmosemu.Start(&cosmosemu.Options{})
	if err != nil {
		return under, over, err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	client, err := connect(ctx, srv, ranges, size.container)
	if err != nil {
		return under, over, err
	}
	defer client.Close()
	feed, err := cosmosfeed.NewFeed(client, "db", "data")
	if err != nil {
		return under, over, err
	}
	store, err := cosmosfeed.NewLeaseStore(client, "db", "leases")
	if err != nil {
		return under, over, err
	}
	turn := 0
	return byTurns(ctx, size.rounds,
		func(ctx context.Context) (measure.Sample, error) { return bareLoop(ctx, client, size.container) },
		func(ctx context.Context) (measure.Sample, error) {
			turn++ // each turn has its own leases, so it starts at the beginning
			return drain(ctx, feed, store, 1, size.container, changefeed.Options{Processor: fmt.Sprint("p", turn)})
		})
}

// byTurns gives both sides a turn to warm up and then so many.
func byTurns(ctx context.Context, rounds int, floor, subject measure.Turn) (under, over measure.Sample, err error) {
	if _, err = measure.Alternate(ctx, 1, floor, subject); err != nil {
		return under, over, err
	}
	sums, err := measure.Alternate(ctx, rounds, floor, subject)
	if err != nil {
		return under, over, err
	}
	return sums[0], sums[1], nil
}
