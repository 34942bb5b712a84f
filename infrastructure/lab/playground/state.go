package playground

import (
	"slices"
	"time"
)

// State is the state of the playground at one time.
type State struct {
	At, Began time.Time
	Seed      uint64
	Rate      float64
	// Acked, Unknown and Rejected count the changes by outcome.
	Acked, Unknown, Rejected int64
	// Arrived counts the messages at the consumer, Redelivered the redeliveries, and Dropped
	// the duplicates that the broker dropped.
	Arrived, Redelivered, Dropped int64
	// InFlight counts the acknowledged changes whose event has not arrived, and Oldest is the
	// age of the oldest.
	InFlight int
	Oldest   time.Duration
	// Parked is the number of parked events.
	Parked  int
	Verdict Verdict
	// Latest is the latency of the last 10 s.
	Latest  Latency
	Relays  []RelayState
	Faults  []FaultState
	Effects []Effect // latest last
	Log     []Entry  // latest last
}

// Lost returns the number of breaches of "nothing acknowledged is lost".
func (s *State) Lost() int { return s.Verdict.Broken["I2"] }

// Doubled returns the number of breaches of "no message arrives twice".
func (s *State) Doubled() int { return s.Verdict.Broken["I4"] }

// Disordered returns the number of breaches of "the events of a key arrive in order".
func (s *State) Disordered() int { return s.Verdict.Broken["I3"] }

// RelayState is one relay.
type RelayState struct {
	Name      string
	Process   int
	Condition Condition
	Ranges    int // owned at the last poll
}

// FaultState is one fault of Faults and its state.
type FaultState struct {
	*Fault
	On   bool
	What string
	Left time.Duration // until it ends automatically
}

// State returns the current state.
func (e *Engine) State() State {
	now := time.Now()
	s := State{At: now, Began: e.began, Seed: e.o.Seed, Rate: e.o.Rate, Verdict: e.judge.state()}
	s.Acked, s.Unknown, s.Arrived = e.judge.counts()
	var since time.Time
	if s.InFlight, since = e.judge.inFlight(); !since.IsZero() {
		s.Oldest = now.Sub(since)
	}
	if e.recorder != nil {
		s.Redelivered = int64(e.recorder.Redelivered())
	}
	if c, err := e.o.Bus.Counters(e.o.Names.Topic); err == nil {
		s.Dropped = c.Duplicates
	}
	s.Latest = e.meter.latency(now.Add(-around), now)
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Parked, s.Rejected = e.parked, int64(e.rejected)
	for _, r := range e.relays {
		s.Relays = append(s.Relays, RelayState{r.name, r.cmd.Process.Pid, r.condition, e.owned[r.name]})
	}
	for i := range Faults {
		f := FaultState{Fault: &Faults[i]}
		if a := e.active[f.Name]; a != nil {
			f.On, f.What, f.Left = true, a.what, max(0, a.until.Sub(now))
		}
		s.Faults = append(s.Faults, f)
	}
	for _, f := range e.effects {
		s.Effects = append(s.Effects, *f)
	}
	s.Log = slices.Clone(e.log)
	return s
}

// Curve returns the last n seconds, at most 20 minutes.
func (e *Engine) Curve(n int) []Point { return e.meter.curve(time.Now(), min(n, kept-1)) }
