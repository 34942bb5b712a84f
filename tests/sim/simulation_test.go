package sim

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestSimulation is fault F24. See doc.go for its environment.
func TestSimulation(t *testing.T) {
	first := testenv.Seed(t, "SIM_SEED", 1)
	seeds, minutes := testkit.Count(t, 1000), 10
	if os.Getenv("FEEDBOX_FAULT_SCALE") == "" {
		seeds, minutes = testenv.Sample(t, 5, 6), testenv.Sample(t, 1, 3)
	}
	seeds = testenv.Count(t, "SIM_SEEDS", max(5, seeds))
	length := time.Duration(testenv.Count(t, "SIM_MINUTES", minutes)) * time.Minute
	only := kindsNamed(t)
	sum := newSummary(first, seeds, length)
	sum.resume(t)
	defer sum.watch(t)()
	t.Run("seeds", func(t *testing.T) {
		for _, seed := range slices.Sorted(maps.Keys(sum.left)) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				sum.begin(seed)
				defer sum.end(t, seed)
				simulate(t, NewPlan(seed, length).only(only), sum)
			})
		}
	})
	sum.report(t)
}

// simulate runs one plan and investigates a failure.
func simulate(t *testing.T, p *Plan, sum *summary) {
	t.Helper()
	began := time.Now()
	o := Execute(t, p)
	sum.add(o)
	if len(o.Violations) > 0 {
		investigate(t, p, o)
	}
	if testing.Verbose() || len(o.Violations) > 0 {
		t.Logf("%s; %d duplicates dropped, %d repeats kept from handlers; faults %v; arrived after %s, handled after %s, simulated %s in %s",
			o.Run.Summary(), o.Duplicates, o.Run.Repeats, o.Counts, o.Run.Settled.Arrived, o.Run.Settled.Handled, o.Simulated.Round(time.Second), time.Since(began).Round(time.Millisecond))
	}
}

// kindsNamed returns the kinds of faults in SIM_ONLY; nil means all.
func kindsNamed(t *testing.T) []string {
	t.Helper()
	list := os.Getenv("SIM_ONLY")
	if list == "" {
		return nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(kindsInOrder, name) {
			t.Fatalf("SIM_ONLY=%q: there is no kind %q; there are %s", list, name, strings.Join(kindsInOrder, ", "))
		}
	}
	return names
}

// only removes faults of other kinds than names. Empty names keep all.
func (p *Plan) only(names []string) *Plan {
	if len(names) > 0 {
		p.Faults = slices.DeleteFunc(p.Faults, func(f Fault) bool { return !slices.Contains(names, f.Kind) })
	}
	return p
}

// summary adds up the seeds of a run.
type summary struct {
	first  uint64
	seeds  int
	length time.Duration
	began  time.Time

	mu sync.Mutex // guards the fields below
	tally
	left map[uint64]bool // seeds to run; true while running
	here int             // seeds done in this process
	heap [2]uint64       // size after the first few seeds, and now
}

// tally is the sum of all seeds.
type tally struct {
	Done       int
	Counts     map[string]int
	Events     int
	Requests   int
	Shops      int // seeds with orders besides contacts
	Sold       int // changes of orders
	Parking    int // seeds with consumers that park
	Skipped    int // events that operators let these skip
	Duplicates int64
	Repeats    int
	Order      int
	Lost       int
	Reported   int
	Simulated  time.Duration
	Slowest    time.Duration // time until everything had arrived
	Failed     bool
}

func newSummary(first uint64, seeds int, length time.Duration) *summary {
	s := &summary{first: first, seeds: seeds, length: length, began: time.Now(), left: map[uint64]bool{}}
	s.Counts = map[string]int{}
	for seed := first; seed < first+uint64(seeds); seed++ {
		s.left[seed] = false
	}
	return s
}

func (s *summary) begin(seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[seed] = true
}

func (s *summary) end(t *testing.T, seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.left, seed)
	s.Failed = s.Failed || t.Failed()
}

// warm is the number of seeds after which the heap should no longer grow.
const warm = 4

func (s *summary) add(o *Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Done++
	s.here++
	for k, n := range o.Counts {
		s.Counts[k] += n
	}
	s.Events += len(o.Run.Events)
	s.Requests += o.Requests
	s.Shops += o.Shops
	s.Sold += o.Sold
	if o.Run.Once {
		s.Parking++
	}
	s.Skipped += len(o.Run.Skipped)
	s.Duplicates += o.Duplicates
	s.Repeats += o.Run.Repeats
	s.Simulated += o.Simulated
	s.Slowest = max(s.Slowest, o.Run.Settled.Arrived)
	s.Reported += len(o.Run.Reported)
	s.Order += o.Broken["I3"]
	s.Lost += o.Broken["I2"]
	if s.here == warm {
		s.heap[0] = heap()
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (s *summary) report(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	took := time.Since(s.began)
	faults, calls := 0, 0
	var list []string
	for _, k := range slices.Sorted(maps.Keys(s.Counts)) {
		list = append(list, fmt.Sprintf("%s %d", k, s.Counts[k]))
		if strings.HasPrefix(k, "call: ") {
			calls += s.Counts[k]
		} else {
			faults += s.Counts[k]
		}
	}
	t.Logf("seeds %d to %d of %s: %d requests, %d events, %d faults and %d failed calls, %d duplicates dropped by the broker, %d repeats kept from handlers, %d losses by expiry reported; all arrived after %s at the latest",
		s.first, s.first+uint64(s.seeds)-1, s.length, s.Requests, s.Events, faults, calls, s.Duplicates, s.Repeats, s.Reported, s.Slowest)
	t.Logf("orders beside contacts in %d seeds: %d of their changes acknowledged", s.Shops, s.Sold)
	t.Logf("consumers that park in %d seeds: %d events skipped by operators", s.Parking, s.Skipped)
	if s.Shops > 0 && s.Sold == 0 {
		t.Error("harness: no order was changed")
	}
	t.Logf("%.1f simulated hours in %s: %.1f simulated hours per real minute", s.Simulated.Hours(), took.Round(time.Second), s.Simulated.Hours()/took.Minutes())
	t.Logf("faults: %s", strings.Join(list, ", "))
	if s.here > warm {
		s.heap[1] = heap()
		t.Logf("heap after %d seeds %d KB, after all %d KB", warm, s.heap[0]>>10, s.heap[1]>>10)
		if s.heap[1] > s.heap[0]+32<<20 {
			t.Errorf("I9 the heap grew from %d to %d KB over the seeds", s.heap[0]>>10, s.heap[1]>>10)
		}
	}
	testkit.Record(t, testkit.Result{
		Fault: "F24", Name: fmt.Sprintf("%d seeds of %s simulated, everything at random", s.seeds, s.length), Seed: s.first,
		Injections: int64(faults + calls), Of: 1000, Events: int64(s.Events), DuplicatesSent: s.Duplicates, DuplicatesSeen: 0,
		OrderViolations: int64(s.Order), Lost: int64(s.Lost), Recovery: s.Slowest.Seconds(), Simulated: s.Simulated.Hours(),
		Note: fmt.Sprintf("%d seeds; %.1f simulated hours per real minute%s", s.Done, s.Simulated.Hours()/took.Minutes(), s.stalls()),
	})
}
