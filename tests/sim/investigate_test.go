package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/tests/testenv"
)

// investigate reports a failing plan: its violations, its failure rate, its history, and a
// minimal set of faults.
func investigate(t *testing.T, p *Plan, o *Outcome) {
	t.Helper()
	t.Errorf("seed %d violates:\n\t%s", p.Seed, strings.Join(o.Violations, "\n\t"))
	keepTrace(t, p, o)
	reruns, failed := testenv.Count(t, "SIM_RERUNS", 5), 0
	for range reruns {
		if len(Execute(t, p).Violations) > 0 {
			failed++
		}
	}
	t.Logf("seed %d failed again in %d of %d runs (SIM_SEED=%d SIM_SEEDS=1 SIM_MINUTES=%d)", p.Seed, failed, reruns, p.Seed, int(p.Length.Minutes()))
	budget := testenv.Duration(t, "SIM_SHRINK", 2*time.Minute)
	if failed == 0 || budget == 0 {
		t.Logf("the plan: %s", p)
		return
	}
	tries := max(1, min(4, reruns/failed)) // runs after which a failure has probably shown
	smaller, runs := shrink(p, time.Now().Add(budget), func(candidate *Plan) bool {
		for range tries {
			if len(Execute(t, candidate).Violations) > 0 {
				return true
			}
		}
		return false
	})
	last := Execute(t, smaller)
	t.Logf("shrunk from %d to %d faults in %d steps; it violates %q:\n%s", len(p.Faults), len(smaller.Faults), runs, last.Violations, smaller)
}

// keepTrace writes the history of a run to a file.
func keepTrace(t *testing.T, p *Plan, o *Outcome) {
	t.Helper()
	dir := os.Getenv("FEEDBOX_RESULTS")
	if dir == "" {
		dir = t.ArtifactDir()
	}
	name := filepath.Join(dir, fmt.Sprintf("sim-seed-%d.txt", p.Seed))
	f, err := os.Create(name)
	if err != nil {
		t.Errorf("keep the history: %v", err)
		return
	}
	_, err = fmt.Fprintf(f, "%s\n\n%s\n\n", p, strings.Join(o.Violations, "\n"))
	if err == nil {
		_, err = o.Trace.WriteTo(f)
	}
	if closed := f.Close(); err != nil || closed != nil {
		t.Errorf("keep the history: %v, %v", err, closed)
	}
	t.Logf("history: %s", name)
}

// shrink removes faults while the plan still fails, larger parts first (Zeller's ddmin), until
// end. It returns the smallest failing plan.
func shrink(p *Plan, end time.Time, fails func(*Plan) bool) (smallest *Plan, runs int) {
	best := *p
	for parts := 2; len(best.Faults) > 0; {
		size := max(1, len(best.Faults)/parts)
		reduced := false
		for from := 0; from < len(best.Faults); {
			if time.Now().After(end) {
				return &best, runs
			}
			candidate := best
			candidate.Faults = slices.Concat(best.Faults[:from], best.Faults[min(from+size, len(best.Faults)):])
			runs++
			if fails(&candidate) {
				best, reduced = candidate, true
			} else {
				from += size
			}
		}
		switch {
		case !reduced && size == 1:
			return &best, runs
		case !reduced:
			parts *= 2
		default:
			parts = max(2, parts-1)
		}
	}
	return &best, runs
}

// A failure that needs two of many faults shrinks to those two.
func TestShrinkFindsNeededFaults(t *testing.T) {
	p := NewPlan(1, 10*time.Minute)
	if len(p.Faults) < 20 {
		t.Fatalf("%d faults in ten minutes", len(p.Faults))
	}
	a, b := p.Faults[3], p.Faults[17]
	smallest, runs := shrink(p, time.Now().Add(time.Minute), func(c *Plan) bool {
		return slices.Contains(c.Faults, a) && slices.Contains(c.Faults, b)
	})
	if len(smallest.Faults) != 2 || smallest.Faults[0] != a || smallest.Faults[1] != b {
		t.Errorf("after %d runs %s", runs, smallest)
	}
}
