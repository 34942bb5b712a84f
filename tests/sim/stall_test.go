//go:build unix

package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// azservicebus holds a mutex while it closes, opens and recovers links
// (internal/amqpLinks.go, Get and recoverConnection). A goroutine that waits for a mutex
// keeps a bubble's time from moving on, and the holder may be waiting for just that: a
// broker that answers late, say. Outside of a bubble the wait ends; inside it never
// does, and nothing from outside may touch it. About one seed in three hundred is so.
//
// A process in which nothing happens any more therefore begins itself anew, with the
// seeds that are left. Those that stood still are run again, with other timing.
const (
	resumeVariable = "SIM_RESUME" // the file with the state of the process before
	stallLooks     = 12           // so many looks without work are a stall
	stallLook      = 5 * time.Second
	mostStalls     = 5 // of one seed
)

// state is what outlives the process.
type state struct {
	Tally  tally
	Left   []uint64
	Began  time.Time
	Stalls map[uint64]int
}

// stalled counts how often each seed stood still, in all processes.
var stalled = map[uint64]int{}

// resume takes over from the process before, if there was one.
func (s *summary) resume(t *testing.T) {
	t.Helper()
	path := os.Getenv(resumeVariable)
	if path == "" {
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var before state
	if err := json.Unmarshal(text, &before); err != nil {
		t.Fatal(err)
	}
	clear(s.left)
	for _, seed := range before.Left {
		s.left[seed] = false
	}
	s.tally, s.began, stalled = before.Tally, before.Began, before.Stalls
	if s.Failed {
		t.Error("a seed failed before a stall; it is above")
	}
}

// watch looks after the process until its result is called.
func (s *summary) watch(t *testing.T) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(stallLook)
		defer tick.Stop()
		idle, before := 0, cpu()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			now := cpu()
			if idle++; now-before > stallLook/50 {
				idle = 0
			}
			before = now
			if idle >= stallLooks {
				s.again(t)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// again begins the process anew, with the seeds that are left.
func (s *summary) again(t *testing.T) {
	s.mu.Lock() // for good: this process ends
	next := state{Tally: s.tally, Began: s.began, Stalls: stalled}
	for seed, runs := range s.left {
		next.Left = append(next.Left, seed)
		if !runs {
			continue
		}
		next.Stalls[seed]++
		fmt.Printf("seed %d stands still: a mutex that is held across I/O keeps virtual time from moving on; it is run again\n", seed)
		if next.Stalls[seed] >= mostStalls {
			panic(fmt.Sprintf("seed %d stood still %d times", seed, mostStalls))
		}
	}
	text, err := json.Marshal(next)
	if err != nil {
		panic(err)
	}
	path := os.Getenv(resumeVariable)
	if path == "" {
		path = fmt.Sprintf("%s/sim-%d.json", os.TempDir(), os.Getpid())
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		panic(err)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	err = syscall.Exec(self, os.Args, append(os.Environ(), resumeVariable+"="+path))
	panic(err)
}

// stalls says what was run again.
func (s *summary) stalls() string {
	n := 0
	for _, times := range stalled {
		n += times
	}
	if path := os.Getenv(resumeVariable); path != "" {
		_ = os.Remove(path) // the run is over
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d runs stood still on a mutex that azservicebus holds across I/O, which stops virtual time, and were run again", n)
}

// cpu is the processor time of this process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
