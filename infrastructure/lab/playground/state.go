package playground

import (
	"slices"
	"time"
)

// State is all there is to see at one moment.
type State struct {
	At, Began time.Time
	Seed      uint64
	Rate      float64
	// Acked, Unknown and TurnedAway count changes by what their clients were told.
	Acked, Unknown, TurnedAway int64
	// Arrived counts messages at the consumer. Redelivered are those that the broker
	// delivered again, and Dropped those that were sent twice and that it dropped.
	Arrived, Redelivered, Dropped int64
	// OnTheWay are acknowledged changes without an event that arrived, and Oldest is how
	// long the oldest of them has been.
	OnTheWay int
	Oldest   time.Duration
	// Parked is how many events are parked.
	Parked  int
	Verdict Verdict
	// Latest is the latency of the last 10 s.
	Latest  Latency
	Relays  []RelayState
	Faults  []FaultState
	Effects []Effect // the latest last
	Log     []Entry  // the latest last
}

// Lost is how many breaches there are of "nothing acknowledged is lost".
func (s *State) Lost() int { return s.Verdict.Broken["I2"] }

// Doubled is how many there are of "no message arrives twice".
func (s *State) Doubled() int { return s.Verdict.Broken["I4"] }

// Disordered is how many there are of "the events of a key arrive in order".
func (s *State) Disordered() int { return s.Verdict.Broken["I3"] }

// RelayState is one relay.
type RelayState struct {
	Name      string
	Process   int
	Condition Condition
	Ranges    int // that it owns, when last looked at
}

// FaultState is one fault of Faults, and whether it is on.
type FaultState struct {
	*Fault
	On   bool
	What string
	Left time.Duration // until it ends by itself
}

// State looks at everything.
func (e *Engine) State() State {
	now := time.Now()
	s := State{At: now, Began: e.began, Seed: e.o.Seed, Rate: e.o.Rate, Verdict: e.judge.state()}
	s.Acked, s.Unknown, s.Arrived = e.judge.counts()
	var since time.Time
	if s.OnTheWay, since = e.judge.onTheWay(); !since.IsZero() {
		s.Oldest = now.Sub(since)
	}
	if e.witness != nil {
		s.Redelivered = int64(e.witness.Redelivered())
	}
	if c, err := e.o.Bus.Counters(e.o.Names.Topic); err == nil {
		s.Dropped = c.Duplicates
	}
	s.Latest = e.meter.latency(now.Add(-around), now)
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Parked, s.TurnedAway = e.parked, int64(e.turnedAway)
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

// Curve is the last n seconds, at most 20 minutes.
func (e *Engine) Curve(n int) []Point { return e.meter.curve(time.Now(), min(n, kept-1)) }
