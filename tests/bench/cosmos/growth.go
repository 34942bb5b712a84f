package cosmos

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"feedbox/tests/bench/cosmos/document"
	"feedbox/tests/bench/measure"
)

// queryGoal is the allowed cost of a point query with 100,000 documents, relative to 1,000.
const queryGoal = 1.3

// Growth measures the server's processor time per operation with a growing number of
// documents and ranges, and its restart time after a crash.
func Growth(ctx context.Context, r *measure.Run) (err error) {
	documents, ranges, megabytes := []int{1_000, 10_000, 100_000}, []int{1, 8, 64}, []int{110, 1100}
	rounds, length := 8, 500*time.Millisecond
	if r.Quick {
		documents, ranges, megabytes, rounds, length = []int{100, 1000}, []int{1, 4}, []int{1, 4}, 2, 100*time.Millisecond
	}
	r.Step("building the servers")
	s, err := newServers(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := growDocuments(ctx, r, s, documents, rounds, length); err != nil {
		return err
	}
	if err := growRanges(ctx, r, s, ranges, rounds, length); err != nil {
		return err
	}
	for _, size := range megabytes {
		if err := reopen(ctx, r, s, size); err != nil {
			return err
		}
	}
	return nil
}

func growDocuments(ctx context.Context, r *measure.Run, s *servers, sizes []int, rounds int, length time.Duration) error {
	children := make([]*child, len(sizes))
	for i, size := range sizes {
		r.Step("storing %d documents", size)
		var err error
		if children[i], err = s.start(ctx, "-tls"); err != nil {
			return err
		}
		if err := children[i].fill(ctx, size); err != nil {
			return err
		}
	}
	for _, kind := range []struct {
		name string
		op   func(size int) operation
		goal float64
	}{
		{"query by id, documents", query, queryGoal},
		{"read, documents", read, measure.GrowthLimit},
		{"create, documents", func(int) operation { return create }, measure.GrowthLimit},
	} {
		r.Step("%s", kind.name)
		turns := make([]measure.Turn, len(sizes))
		for i, size := range sizes {
			turns[i] = children[i].turn(length, kind.op(size))
		}
		if err := grow(ctx, r, kind.name, kind.goal, sizes, rounds, turns); err != nil {
			return err
		}
	}
	for _, c := range children {
		c.stop()
	}
	return nil
}

func growRanges(ctx context.Context, r *measure.Run, s *servers, sizes []int, rounds int, length time.Duration) error {
	turns := make([]measure.Turn, len(sizes))
	for i, size := range sizes {
		r.Step("storing documents in %d ranges", size)
		c, err := s.start(ctx, "-tls", fmt.Sprintf("-partitions=%d", size))
		if err != nil {
			return err
		}
		defer c.stop()
		if err := c.fill(ctx, stored); err != nil {
			return err
		}
		turns[i] = c.turn(length, batchOf5)
	}
	return grow(ctx, r, "batch of 5, ranges", measure.GrowthLimit, sizes, rounds, turns)
}

// grow measures the sizes in turns and adds the cost of each.
func grow(ctx context.Context, r *measure.Run, name string, goal float64, sizes []int, rounds int, turns []measure.Turn) error {
	if _, err := measure.Alternate(ctx, 1, turns...); err != nil {
		return err // of the warm-up
	}
	sums, err := measure.Alternate(ctx, rounds, turns...)
	if err != nil {
		return err
	}
	points := make([]measure.Point, len(sizes))
	for i, size := range sizes {
		points[i] = measure.Point{At: fmt.Sprint(size), Cost: measure.Micros(sums[i].PerOperation())}
	}
	figures := measure.Growth(name, "µs CPU", points...)
	for i := range figures[1:] {
		figures[i+1] = figures[i+1].Wants(measure.RatioAtMost(goal))
	}
	r.Add(figures...)
	return nil
}

// reopenGoal is the allowed time, in seconds, from the start of a process with the largest
// store to the first read.
const reopenGoal = 2

// reopen fills a store on disk, kills the server and measures the time until the first read
// from the next one.
func reopen(ctx context.Context, r *measure.Run, s *servers, megabytes int) error {
	dir := "-data-dir=" + filepath.Join(s.dir, fmt.Sprint("data", megabytes))
	r.Step("storing %d MB on disk", megabytes)
	first, err := s.start(ctx, dir)
	if err != nil {
		return err
	}
	if err := first.fillMegabytes(ctx, megabytes); err != nil {
		return err
	}
	first.kill()
	r.Step("reopening %d MB after kill -9", megabytes)
	began := time.Now()
	second, err := s.start(ctx, dir)
	if err != nil {
		return err
	}
	defer second.stop()
	if _, err := second.container.ReadItem(ctx, azcosmos.NewPartitionKeyString("p0"), "0", nil); err != nil {
		return err
	}
	r.Add(measure.Cost(fmt.Sprintf("first read after kill -9, %d MB", megabytes), time.Since(began).Seconds(), "s").Wants(measure.AtMost(reopenGoal)).
		Noting("from the start of the process"))
	return nil
}

// fillMegabytes stores incompressible documents, 100 per batch.
func (c *child) fillMegabytes(ctx context.Context, megabytes int) error {
	const inBatch = 100
	batches := int64(max(1, megabytes<<20/(inBatch*len(document.Body("100", "p100000")))))
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range clients / 2 {
		group.Go(func() error {
			for n := next.Add(1) - 1; n < batches; n = next.Add(1) - 1 {
				pk := fmt.Sprint("p", n)
				b := c.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(pk))
				for i := range inBatch {
					b.CreateItem(document.With(fmt.Sprint(i), pk, noise()), nil)
				}
				if err := executed(c.container.ExecuteTransactionalBatch(ctx, b, nil)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func noise() string {
	raw := make([]byte, document.Filler*3/4)
	_, _ = rand.Read(raw) // never fails
	return base64.StdEncoding.EncodeToString(raw)
}
