package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"feedbox/infrastructure/wiring"
	"feedbox/tests/bench/measure"
)

// latencyContacts is the number of contacts that are changed. The consumer holds a session
// for each.
const latencyContacts = 200

// latency measures the time from the commit of an event to the consumer's handler, at two
// rates, with default settings for API, relay and the consumer kit on a session subscription,
// and with two longer pauses between reads of the feed.
//
// The load is an open loop: changes start at fixed times, independently of earlier ones, so
// that a stall counts for every change during it. The commit time is the time at which the
// API's reply was read. An event that was handled before counts as 0. The time since the
// change was due includes the API and is a separate figure.
//
// Everything runs in one process with the garbage collection setting of the services.
func latency(ctx context.Context, r *measure.Run) (err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(wiring.GarbagePercent))
	length := 30 * time.Second
	if r.Quick {
		length = 3 * time.Second
	}
	if err := latencyAt(ctx, r, length, "", 200, 1000); err != nil {
		return err
	}
	return errors.Join(latencyAt(ctx, r, length, "10ms", 1000), latencyAt(ctx, r, length, "100ms", 1000))
}

// latencyAt measures with a pause between reads (FEEDBOX_RELAY_POLL_BUSY); "" is the default.
func latencyAt(ctx context.Context, r *measure.Run, length time.Duration, pause string, rates ...int) (err error) {
	r.Step("latency: starting API, relay and consumer")
	var settings []string
	suffix := ""
	if pause != "" {
		settings, suffix = []string{"FEEDBOX_RELAY_POLL_BUSY=" + pause}, ", reads at least "+pause+" apart"
	}
	l, err := startLine(ctx, settings...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	for _, rate := range rates {
		r.Step("latency: warming up at %d/s", rate)
		if _, err := l.run(ctx, rate, min(length, 3*time.Second)); err != nil {
			return err
		}
		r.Step("latency: %d/s for %v", rate, length)
		before := l.reads.Load()
		got, err := l.run(ctx, rate, length)
		if err != nil {
			return err
		}
		reads := float64(l.reads.Load()-before) / length.Seconds()
		p50 := measure.Cost(fmt.Sprintf("latency at %d/s, p50%s", rate, suffix), at(got.sinceCommit, 50), "ms").Using(got.cpu, 0).
			Noting("reply of the API to handler; since due %.1f ms; %.0f feed reads/s", at(got.sinceDue, 50), reads)
		p99 := measure.Cost(fmt.Sprintf("latency at %d/s, p99%s", rate, suffix), at(got.sinceCommit, 99), "ms").
			Noting("since due %.1f ms; worst %.1f ms; %d refused", at(got.sinceDue, 99), at(got.sinceCommit, 100), got.refused)
		if rate == 1000 && pause == "" {
			p50, p99 = p50.Wants(measure.AtMost(3)), p99.Wants(measure.AtMost(15))
		}
		r.Add(p50, p99)
	}
	return nil
}

// at returns the q-th percentile in milliseconds.
func at(h *hdrhistogram.Histogram, q float64) float64 {
	return float64(h.ValueAtQuantile(q)) / 1000
}

// latencies are the times of one run, in microseconds.
type latencies struct {
	sinceCommit, sinceDue *hdrhistogram.Histogram
	cpu                   time.Duration // of the whole process, per event
	refused               int64         // changes that an overloaded API refused
}

// change is one change of a contact, with the times at which it was due, committed and
// handled, in nanoseconds since the start of the run; 0 means not yet.
type change struct {
	due                int64
	committed, handled atomic.Int64
}

// run makes changes at a rate and waits until the consumer has handled all of them.
func (l *line) run(ctx context.Context, rate int, length time.Duration) (latencies, error) {
	count := rate * int(length/time.Millisecond) / 1000
	l.runs++
	run := &changes{name: strconv.Itoa(l.runs), list: make([]change, count), left: make(chan struct{})}
	run.open.Store(2 * int64(count))
	l.current.Store(run)
	cpu := measure.CPU()
	run.began = time.Now()
	failed := make(chan error, count)
	var refused atomic.Int64
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range run.list {
		c := &run.list[i]
		due := time.Duration(i) * time.Second / time.Duration(rate)
		c.due = int64(due)
		if wait := time.Until(run.began.Add(due)); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return latencies{}, ctx.Err()
			}
		}
		go func() {
			err := l.update(ctx, i%latencyContacts, run.name, i)
			switch {
			case errors.Is(err, errRefused):
				refused.Add(1)
				run.done()
				run.done() // there is no event
			case err != nil:
				failed <- err
			default:
				c.committed.Store(int64(time.Since(run.began)))
				run.done()
			}
		}()
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	select {
	case <-run.left:
	case err := <-failed:
		return latencies{}, err
	case <-ctx.Done():
		return latencies{}, fmt.Errorf("%d replies and events are missing: %w", run.open.Load(), ctx.Err())
	}
	got := run.latencies()
	got.cpu, got.refused = (measure.CPU()-cpu)/time.Duration(max(count, 1)), refused.Load()
	return got, nil
}

// changes are those of one run.
type changes struct {
	name  string
	began time.Time
	list  []change
	open  atomic.Int64  // missing replies and events
	left  chan struct{} // closed when none is
}

// done records the reply to a change or the handling of its event.
func (r *changes) done() {
	if r.open.Add(-1) == 0 {
		close(r.left)
	}
}

// handled records that the event of change i has reached the handler.
func (r *changes) handled(i int) {
	if i < 0 || i >= len(r.list) {
		return
	}
	if c := &r.list[i]; c.handled.CompareAndSwap(0, int64(time.Since(r.began))) {
		r.done()
	}
}

func (r *changes) latencies() latencies {
	l := latencies{sinceCommit: hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3), sinceDue: hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)}
	for i := range r.list {
		c := &r.list[i]
		if c.committed.Load() == 0 {
			continue
		}
		_ = l.sinceCommit.RecordValue(max(0, c.handled.Load()-c.committed.Load()) / 1000) // within the minute that a run may take
		_ = l.sinceDue.RecordValue((c.handled.Load() - c.due) / 1000)
	}
	return l
}
