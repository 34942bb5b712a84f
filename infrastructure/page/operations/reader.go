package operations

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
)

const (
	watchedFor    = 10 * time.Second // a request for a view keeps the reads going this long
	metricsBusy   = 2 * time.Second
	metricsIdle   = 15 * time.Second
	rangesEvery   = 2 * time.Second
	parkedEvery   = 3 * time.Second
	share         = 5 // reads take at most 1/share of the time, so that they cannot overload the store
	readTimeout   = 2 * time.Minute
	firstReadWait = 1500 * time.Millisecond // bounds the wait of the first view for a read
	maxMoves      = 200
	maxError      = 300 // bytes kept of a parked key's error, because there may be many keys
)

// Overview is an immutable copy of the latest reads.
type Overview struct {
	Ranges        Source // of the next four
	Snapshot      operator.Snapshot
	Paused        bool // all relays are
	Hosts         []changefeed.Host
	Moves         []Move // the latest first
	Keys          Source // of the next two
	Gates         []relay.Gate
	Reasons       []operator.Reason
	ConsumersRead Source // of the next one
	Consumers     []operator.ConsumerKeys
	MetricsRead   Source // of the next four; fails if any process does not answer
	metrics       metricsSum
	rates         [seriesCount]float64
	sendTook      time.Duration // mean of one batch
	delivery      time.Duration // mean from creation to acceptance
	consumed      consumed      // per second
}

// keysOfConsumers returns the number of keys that consumers have parked.
func (p *Overview) keysOfConsumers() (n int) {
	for _, c := range p.Consumers {
		n += len(c.Gates)
	}
	return n
}

// Move is a change of ownership.
type Move struct {
	At       time.Time // end of the read that found it
	Lease    string
	From, To string
	Epoch    int64
}

// Reader reads for all tabs; see the package comment. It is safe for concurrent use.
type Reader struct {
	port      Watcher
	metrics   []string
	client    *http.Client
	container string           // see Options.Container
	wake      [3]chan struct{} // one per loop

	mu       sync.Mutex // guards the fields below
	asked    time.Time  // last call of Latest
	woken    time.Time  // first call of Latest after a pause of the reads
	overview Overview
	history  *history
}

func newReader(port Watcher, metrics []string, client *http.Client) *Reader {
	r := &Reader{port: port, metrics: metrics, client: client, history: newHistory()}
	r.overview.rates = unknownRates()
	for i := range r.wake {
		r.wake[i] = make(chan struct{}, 1)
	}
	return r
}

// Run reads until ctx ends.
func (r *Reader) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return r.loop(ctx, r.wake[0], metricsBusy, metricsIdle, r.readMetrics) })
	group.Go(func() error { return r.loop(ctx, r.wake[1], rangesEvery, 0, r.readRanges) })
	group.Go(func() error { return r.loop(ctx, r.wake[2], parkedEvery, 0, r.readParked) })
	return group.Wait()
}

// loop reads every busy while views are requested, and every idle otherwise; an idle of 0
// means not at all.
func (r *Reader) loop(ctx context.Context, wake <-chan struct{}, busy, idle time.Duration, read func(ctx context.Context)) error {
	for {
		pause := idle
		active := r.watched()
		if active || idle > 0 {
			began := time.Now()
			bounded, cancel := context.WithTimeout(ctx, readTimeout)
			read(bounded)
			cancel()
			if active {
				pause = max(busy, (share-1)*time.Since(began))
			}
		}
		var timer <-chan time.Time // never, until woken
		if pause > 0 {
			timer = time.After(pause)
		}
		select {
		case <-timer:
		case <-wake:
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *Reader) watched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.asked) < watchedFor
}

// Latest returns the latest reads and keeps the reads going. After a pause of the reads it waits
// up to firstReadWait for new ones.
func (r *Reader) Latest(ctx context.Context) Overview {
	r.mu.Lock()
	idle := time.Since(r.asked) >= watchedFor
	r.asked = time.Now()
	if idle {
		r.woken = r.asked
	}
	woken := r.woken
	r.mu.Unlock()
	if idle {
		r.refresh()
	}
	deadline := woken.Add(firstReadWait)
	for {
		r.mu.Lock()
		p := r.overview
		r.mu.Unlock()
		scraped := len(r.metrics) == 0 || p.MetricsRead.Tried.After(woken)
		if p.Ranges.Tried.After(woken) && p.Keys.Tried.After(woken) && p.ConsumersRead.Tried.After(woken) && scraped || !time.Now().Before(deadline) {
			return p
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return p
		}
	}
}

// refresh starts all reads now, such as after an act.
func (r *Reader) refresh() {
	for _, wake := range r.wake {
		select {
		case wake <- struct{}{}:
		default: // already woken
		}
	}
}

// curve returns the last 15 minutes of one series.
func (r *Reader) curve(n series) []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.curve(n, time.Now())
}

func (r *Reader) readParked(ctx context.Context) {
	began := time.Now()
	gates, err := r.port.GatesFor(ctx, "")
	for i := range gates {
		gates[i].Error, gates[i].Closing.Error = shortened(gates[i].Error), shortened(gates[i].Closing.Error)
	}
	reasons := operator.Reasons(gates)
	r.mu.Lock()
	r.overview.Keys.note(began, err)
	if err == nil {
		r.overview.Gates, r.overview.Reasons = gates, reasons
	}
	r.mu.Unlock()
	r.readConsumers(ctx)
}

// readConsumers is a read of its own: it may fail alone, and the keys of the relay must not wait for it.
func (r *Reader) readConsumers(ctx context.Context) {
	began := time.Now()
	consumers, err := r.port.ConsumerKeys(ctx)
	for _, c := range consumers {
		for i := range c.Gates {
			c.Gates[i].Error, c.Gates[i].Closing.Error = shortened(c.Gates[i].Error), shortened(c.Gates[i].Closing.Error)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.overview.ConsumersRead.note(began, err)
	if err == nil {
		r.overview.Consumers = consumers
	}
}

// shortened copies the beginning, so that the whole text can be garbage-collected.
func shortened(text string) string {
	if len(text) <= maxError {
		return text
	}
	return string([]byte(text[:maxError])) + " …"
}
