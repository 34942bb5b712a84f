package simulation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/changefeed"

	"golang.org/x/sync/errgroup"
)

// Config is the configuration of one run. Its random choices follow from Seed. The
// interleaving of goroutines does not, so a seed repeats the faults but not every step.
type Config struct {
	Seed     uint64
	Hosts    int           // at the start; default 3
	MaxHosts int           // default 5
	Keys     int           // default 24
	Length   time.Duration // of the time with faults, default 3 min
	Pace     time.Duration // mean time between writes, default 100 ms
	Stops    bool          // stop and wake hosts
	Suspends bool          // mean time between writes, default 100 ms
	Drift    float64       // of the hosts' clocks, at most; 0.03 is 3 %
	NoDelete bool          // the store never deletes
	Splits   bool
	// Foreign makes a processor of another product come, crash and leave on the same
	// leases. It cannot be combined with Splits, because its behavior then is not
	// simulated.
	Foreign bool
	Options changefeed.Options
	// Steps records the steps of the hosts. Default: nothing is recorded.
	Steps Steps
}

// Steps records the steps of hosts, for the comparison with the specification (tests/spec).
type Steps interface {
	// Store wraps the lease store of a host; clock is nil for an operator.
	Store(host string, clock func() (own, wall time.Time), s changefeed.LeaseStore) changefeed.LeaseStore
	// Check: the host found its lease valid. Done: a change was delivered. Gone: another version
	// replaces it. Commit: its place in the feed.
	Check(host string, in changefeed.FeedRange)
	Done(host string, change int)
	Gone(change int)
	Commit(change int, key, epk string, lsn int64)
}

// Report is the result of a run, or of several.
type Report struct {
	Seed                            uint64 // the first one
	Runs                            int
	Simulated                       time.Duration
	Written, Delivered, Redelivered int
	Zombies                         int
	Letters                         int            // dead letters
	Foreign                         int            // leases another product acquired
	Struck                          map[string]int // number of each kind of fault
	// Owned is the time from the end of the faults until every lease was owned.
	Owned time.Duration
	// Balanced is the time from the end of the faults until the leases were shared out
	// evenly.
	Balanced time.Duration
	Faults   []string
}

func (r *Report) String() string {
	var struck []string
	for _, what := range slices.Sorted(maps.Keys(r.Struck)) {
		struck = append(struck, fmt.Sprintf("%d %s", r.Struck[what], what))
	}
	return fmt.Sprintf("%d runs from seed %d, %s simulated: %d written, %d delivered (%d again), %d zombies, %d dead letters; %s; %d leases taken by another product; owned after %s, balanced after %s",
		r.Runs, r.Seed, r.Simulated.Round(time.Second), r.Written, r.Delivered, r.Redelivered, r.Zombies, r.Letters, strings.Join(struck, ", "), r.Foreign, r.Owned, r.Balanced)
}

// Add sums up runs.
func (r *Report) Add(o *Report) {
	if r.Runs == 0 {
		r.Seed, r.Struck = o.Seed, map[string]int{}
	}
	for what, n := range o.Struck {
		r.Struck[what] += n
	}
	r.Runs += o.Runs
	r.Simulated += o.Simulated
	r.Faults = append(r.Faults, o.Faults...)
	r.Written += o.Written
	r.Delivered += o.Delivered
	r.Redelivered += o.Redelivered
	r.Zombies += o.Zombies
	r.Letters += o.Letters
	r.Foreign += o.Foreign
	r.Owned = max(r.Owned, o.Owned)
	r.Balanced = max(r.Balanced, o.Balanced)
}

// Err returns nil if no check failed.
func (r *Report) Err() error {
	if len(r.Faults) == 0 {
		return nil
	}
	return fmt.Errorf("%s\n\t%s", r, strings.Join(r.Faults, "\n\t"))
}

// Count returns the number of violations of the checks with these names; doc.go lists them.
func (r *Report) Count(names ...string) int64 {
	n := int64(0)
	for _, f := range r.Faults {
		if name, _, _ := strings.Cut(f, " "); slices.Contains(names, name) {
			n++
		}
	}
	return n
}

type sim struct {
	ctx      context.Context //nolint:containedctx // of the run: hosts are started throughout it
	config   Config
	backend  Backend
	rng      *rand.Rand
	verifier *verifier
	history  *history
	store    faultSource
	feed     faultSource
	handlers faultSource
	hosts    []*host        // running or stopped, not crashed
	running  sync.WaitGroup // every host that was started
	names    int
	report   Report
	foreign  atomic.Int64 // leases another product acquired
	letters  atomic.Int64 // dead letters
	requests atomic.Int64 // of operators
	stuck    atomic.Bool  // the documents of a key wait
}

// Run runs the simulation. It must be called in a synctest bubble. Every goroutine it
// started has ended when it returns.
func Run(ctx context.Context, backend Backend, config Config) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &sim{ctx: ctx, config: config, backend: backend, verifier: newVerifier()}
	s.rng = rand.New(rand.NewPCG(config.Seed, 1))
	s.store.rng = rand.New(rand.NewPCG(config.Seed, 2))
	s.feed.rng = rand.New(rand.NewPCG(config.Seed, 3))
	s.handlers.rng = rand.New(rand.NewPCG(config.Seed, 4))
	s.history = newHistory(s.verifier)
	s.verifier.steps = config.Steps
	s.report = Report{Seed: config.Seed, Runs: 1, Struck: map[string]int{}}
	s.stuck.Store(true)
	began := time.Now()
	c := &s.config
	if c.Hosts == 0 {
		c.Hosts, c.MaxHosts, c.Keys, c.Length, c.Pace = 3, 5, 24, 3*time.Minute, 100*time.Millisecond
	}
	for range c.Hosts {
		if err := s.join(); err != nil {
			return nil, err
		}
	}
	writing, stopWriting := context.WithCancel(ctx)
	var writers errgroup.Group
	writers.Go(func() error { return s.write(writing) })
	writers.Go(func() error { s.runForeignHosts(writing); return nil })
	writers.Go(func() error { return s.operate(writing) })
	err := s.injectFaults(ctx)
	stopWriting()
	if err = cmp.Or(err, writers.Wait()); err == nil {
		err = s.settle(ctx)
	}
	for _, h := range s.hosts {
		h.end()
	}
	s.running.Wait()
	s.report.Written, s.report.Delivered = len(s.verifier.changes), s.verifier.total
	s.report.Redelivered, s.report.Zombies = s.verifier.repeated, s.verifier.zombies
	s.report.Struck["requests"] = int(s.requests.Load())
	s.report.Foreign, s.report.Letters = int(s.foreign.Load()), int(s.letters.Load())
	s.report.Faults, s.report.Simulated = s.verifier.faults, time.Since(began)
	return &s.report, err
}

// write changes documents until ctx ends.
func (s *sim) write(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(s.config.Seed, 5))
	for {
		pause := time.Duration(rng.ExpFloat64() * float64(s.config.Pace))
		if wait(ctx, pause) != nil {
			return nil //nolint:nilerr // the end of the context is the end of the work
		}
		key := fmt.Sprintf("key-%d", rng.IntN(s.config.Keys))
		id := fmt.Sprintf("doc-%d", rng.IntN(40))
		change := s.verifier.written(key, id, s.backend.EPK(key))
		lsn, err := s.backend.Put(s.ctx, key, id, change.serial)
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		s.verifier.committed(change, lsn)
	}
}

// Backend is the container and the lease store of the hosts.
type Backend interface {
	// Connect gives a host its own view of both.
	Connect(host string) (changefeed.Feed, changefeed.LeaseStore, error)
	// Put writes a document whose body has the member "serial", and returns the LSN of the
	// change.
	Put(ctx context.Context, key, id string, serial int) (lsn int64, err error)
	// EPK returns the effective partition key of a key.
	EPK(key string) string
	// Split and Merge change the physical range of an effective partition key. They do
	// nothing if that is impossible.
	Split(epk string)
	Merge(epk string)
}
