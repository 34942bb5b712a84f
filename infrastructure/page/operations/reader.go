package operations

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
)

const (
	watched      = 10 * time.Second // how long a look counts
	metricsBusy  = 2 * time.Second
	metricsIdle  = 15 * time.Second
	rangesEvery  = 2 * time.Second
	parkedEvery  = 3 * time.Second
	maxAge       = 30 * time.Second // what is older is waited for
	share        = 5                // a read takes no more than one in so many
	readTimeout  = 2 * time.Minute
	firstPicture = 1500 * time.Millisecond // how long a view waits for what was not read of late
	maxMoves     = 200
	maxError     = 300 // bytes kept of a parked key's error
)

// Picture is what was read last. It is not changed any more.
type Picture struct {
	Standing   operator.Standing
	Paused     bool // all relays are told to
	Hosts      []changefeed.Host
	Moves      []Move // the latest first
	RangesAt   time.Time
	RangesTook time.Duration
	RangesErr  string
	Gates      []relay.Gate
	Reasons    []operator.Reason
	GatesAt    time.Time
	GatesErr   string
	told       told
	rates      [numbers]float64
	MetricsErr string
	sendTook   time.Duration // mean of one batch
	delivery   time.Duration // mean from creation to acceptance
}

// Move is a change of ownership.
type Move struct {
	At       time.Time
	Lease    string
	From, To string
	Epoch    int64
}

// Reader reads for all tabs; see the package comment. It is safe for concurrent use.
type Reader struct {
	port    Watcher
	metrics []string
	client  *http.Client
	log     *slog.Logger
	wake    chan struct{}

	mu      sync.Mutex
	asked   time.Time
	picture Picture
	history *history
}

func newReader(port Watcher, metrics []string, client *http.Client, log *slog.Logger) *Reader {
	return &Reader{port: port, metrics: metrics, client: client, log: log, wake: make(chan struct{}, 8), history: newHistory()}
}

// Run reads until ctx ends.
func (r *Reader) Run(ctx context.Context) error {
	var group errgroup.Group
	woken := [3]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}
	group.Go(func() error { // one wake for all three
		for {
			select {
			case <-r.wake:
				for _, w := range woken {
					select {
					case w <- struct{}{}:
					default:
					}
				}
			case <-ctx.Done():
				return nil
			}
		}
	})
	group.Go(func() error { return r.loop(ctx, woken[0], metricsBusy, metricsIdle, r.readMetrics) })
	group.Go(func() error { return r.loop(ctx, woken[1], rangesEvery, 0, r.readRanges) })
	group.Go(func() error { return r.loop(ctx, woken[2], parkedEvery, 0, r.readParked) })
	return group.Wait()
}

// loop reads each busy while somebody looks, and each idle while nobody does; idle 0 is
// not at all.
func (r *Reader) loop(ctx context.Context, wake <-chan struct{}, busy, idle time.Duration, read func(ctx context.Context)) error {
	for {
		pause := idle
		looked := r.looked()
		if looked || idle > 0 {
			began := time.Now()
			bounded, cancel := context.WithTimeout(ctx, readTimeout)
			read(bounded)
			cancel()
			if looked {
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

func (r *Reader) looked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.asked) < watched
}

// Look returns what was read last, and has it read on. It waits a little for what was not
// read of late.
func (r *Reader) Look(ctx context.Context) Picture {
	r.mu.Lock()
	idle := time.Since(r.asked) >= watched
	r.asked = time.Now()
	late := r.asked.Add(-maxAge)
	r.mu.Unlock()
	if idle {
		r.nudge()
	}
	deadline := time.Now().Add(firstPicture)
	for {
		r.mu.Lock()
		p := r.picture
		r.mu.Unlock()
		if p.RangesAt.After(late) && p.GatesAt.After(late) || time.Now().After(deadline) {
			return p
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return p
		}
	}
}

// nudge has everything read now, such as after an act.
func (r *Reader) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// curve is one number's last 15 minutes.
func (r *Reader) curve(n number) []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.curve(n, time.Now())
}

func (r *Reader) readParked(ctx context.Context) {
	gates, err := r.port.GatesFor(ctx, "")
	for i := range gates {
		gates[i].Error, gates[i].Closing.Error = cut(gates[i].Error), cut(gates[i].Closing.Error)
	}
	reasons := operator.Reasons(gates)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.picture.GatesErr = words(err)
	if err == nil {
		r.picture.Gates, r.picture.Reasons = gates, reasons
	}
	r.picture.GatesAt = time.Now()
}

// cut copies the beginning, so that the whole can be forgotten.
func cut(text string) string {
	if len(text) <= maxError {
		return text
	}
	return string([]byte(text[:maxError])) + " …"
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
