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
// (internal/amqpLinks.go, Get and recoverConnection). A goroutine that waits for a mutex stops
// the virtual time of its bubble, and the holder of the mutex may be waiting for that time, for
// example for a late answer of the broker. In a bubble this wait never ends, and nothing outside
// may interrupt it. It happens in about one seed in three hundred.
//
// A process that makes no progress therefore restarts itself (exec) with the remaining seeds. The
// stalled ones are run again, with other timing.
const (
	resumeVariable = "SIM_RESUME" // the file with the state of the previous process
	stallLooks     = 12           // checks without CPU time that mean a stall
	stallLook      = 5 * time.Second
	mostStalls     = 5 // per seed
)

// state is passed to the next process.
type state struct {
	Tally  tally
	Left   []uint64
	Began  time.Time
	Stalls map[uint64]int
}

// stalled counts the stalls of each seed in all processes.
var stalled = map[uint64]int{}

// resume loads the state of the previous process, if there was one.
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

// watch restarts the process after a stall, until end is called.
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

// again restarts the process with the remaining seeds.
func (s *summary) again(t *testing.T) {
	s.mu.Lock() // never unlocked: this process ends
	next := state{Tally: s.tally, Began: s.began, Stalls: stalled}
	for seed, runs := range s.left {
		next.Left = append(next.Left, seed)
		if !runs {
			continue
		}
		next.Stalls[seed]++
		fmt.Printf("seed %d stalled: a mutex held across I/O stops virtual time; running it again\n", seed)
		if next.Stalls[seed] >= mostStalls {
			panic(fmt.Sprintf("seed %d stalled %d times", seed, mostStalls))
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

// stalls describes the reruns for the record.
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
	return fmt.Sprintf("; %d runs stalled on a mutex that azservicebus holds across I/O, which stops virtual time, and were run again", n)
}

// cpu returns the CPU time of this process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
