package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"feedbox/changefeed"
	"feedbox/tests/bench/measure"
)

// page is the number of documents per read and per operation. The time of a single document
// would be too short for a measurement in nanoseconds.
const page = 100

// drain runs hosts until they have handled n documents.
func drain(ctx context.Context, feed changefeed.Feed, store changefeed.LeaseStore, hosts, n int, o changefeed.Options) (measure.Sample, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var handled atomic.Int64
	all := make(chan struct{})
	handler := changefeed.HandlerFunc(func(_ context.Context, batch *changefeed.Batch) error {
		items := int64(len(batch.Items))
		if now := handled.Add(items); now >= int64(n) && now-items < int64(n) {
			close(all)
		}
		return nil
	})
	began, cpu := time.Now(), measure.CPU()
	ended := make(chan error, hosts)
	started := 0
	var err error
	o.Logger = slog.New(slog.DiscardHandler) // one line per lease would hide the figures
	for ; started < hosts && err == nil; started++ {
		o.Host = fmt.Sprintf("h%d", started)
		var p *changefeed.Processor
		if p, err = changefeed.New(feed, store, handler, &o); err != nil {
			break
		}
		go func() { ended <- p.Run(ctx) }()
	}
	if err == nil {
		select {
		case <-all:
		case err = <-ended:
			started--
			err = errors.Join(errors.New("a host ended before everything was handled"), err)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	sample := measure.Sample{Operations: int64(n / page), Elapsed: time.Since(began), CPU: measure.CPU() - cpu}
	cancel()
	for range started {
		err = errors.Join(err, <-ended)
	}
	if more := handled.Load(); err == nil && more != int64(n) {
		err = fmt.Errorf("%d documents handled of %d", more, n)
	}
	return sample, err
}

// readAll is the floor: it reads every page of every range and ignores it.
func readAll(ctx context.Context, feed changefeed.Feed, n int) (measure.Sample, error) {
	return measure.Took(int64(n/page), func() error {
		ranges, err := feed.Ranges(ctx)
		if err != nil {
			return err
		}
		got := 0
		for _, r := range ranges {
			for token := ""; ; {
				read, err := feed.Read(ctx, changefeed.ReadRequest{Range: r, Continuation: token, MaxItems: page})
				if err != nil {
					return err
				}
				got += len(read.Items)
				token = read.Continuation
				if read.Release != nil {
					read.Release()
				}
				if read.CaughtUp {
					break
				}
			}
		}
		return complete(got, n)
	})
}

func complete(got, want int) error {
	if got != want {
		return fmt.Errorf("read %d documents of %d", got, want)
	}
	return nil
}
