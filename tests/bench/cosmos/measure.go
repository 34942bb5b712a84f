// Package cosmos is the benchmark's stage for the Cosmos DB emulator: the processor time of
// the server for each operation of azcosmos, compared with a net/http server that gives the
// same answers and stores nothing. See package measure.
//
// Each server is a separate process (command serve), so that its processor time and memory
// can be measured. This process makes the load: TLS, key authorization, documents of 1 KB,
// 16 clients. Emulator and floor take turns.
package cosmos

import (
	"context"
	"errors"
	"time"

	"feedbox/tests/bench/measure"
)

var _, _ measure.Stage = Measure, Growth

// clients send operations at the same time.
const clients = 16

// kinds lists the operations with their goals, relative to the floor; 0 means no goal.
var kinds = []struct {
	name string
	op   operation
	goal float64
}{
	{"feed page of 100", feedPage, 0}, // first, so that each run reads the same documents, those stored at the start
	{"create", create, 1.7},
	{"read", read(stored), 1.5},
	{"upsert", upsert, 0},
	{"batch of 5", batchOf5, 2.5},
}

// Measure measures the emulator and the floor, then start and idle cost.
func Measure(ctx context.Context, r *measure.Run) (err error) {
	rounds, length := 8, 500*time.Millisecond
	if r.Quick {
		rounds, length = 1, 100*time.Millisecond
	}
	r.Step("building the servers")
	s, err := newServers(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := startAndIdle(ctx, r, s); err != nil {
		return err
	}
	emulator, err := s.start(ctx, "-tls")
	if err != nil {
		return err
	}
	floor, err := s.start(ctx, "-tls", "-floor")
	if err != nil {
		return err
	}
	same, err := s.start(ctx, "-tls", "-floor", "-headers")
	if err != nil {
		return err
	}
	if err := emulator.fill(ctx, stored); err != nil {
		return err
	}
	for _, kind := range kinds {
		r.Step("%s, %d rounds", kind.name, rounds)
		if _, err := measure.Alternate(ctx, 1, floor.turn(length, kind.op), same.turn(length, kind.op), emulator.turn(length, kind.op)); err != nil {
			return err // of the warm-up
		}
		sums, err := measure.Alternate(ctx, rounds, floor.turn(length, kind.op), same.turn(length, kind.op), emulator.turn(length, kind.op))
		if err != nil {
			return err
		}
		under, headers, over := sums[0], sums[1], sums[2]
		f := measure.Cost(kind.name, measure.Micros(over.PerOperation()), "µs CPU").Over(measure.Micros(under.PerOperation())).
			Using(over.PerOperation(), under.PerOperation()).Noting("server only; %.2f times the floor with the same headers; %.0f op/s, floor %.0f",
			float64(over.PerOperation())/float64(headers.PerOperation()), over.Rate(), under.Rate())
		if kind.goal != 0 {
			f = f.Wants(measure.RatioAtMost(kind.goal))
		}
		r.Add(f)
	}
	return nil
}
