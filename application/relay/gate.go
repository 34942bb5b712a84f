package relay

import "time"

// Gate is the state of a parked key.
type Gate struct {
	Key      string
	Closing  Closing
	Progress Progress  // how far the key has come; events that it covers are done
	Events   int64     // how many stand behind it
	Last     int64     // how many were ever put behind it
	Sequence int64     // that of the event put there last; of one that has none, the one before
	Intent   *Intent   // what an operator wants; nil = nothing
	Attempts int       // how often it was given up to drain it
	Error    string    // why the last time; "" = never
	TriedAt  time.Time // when that was; zero = never
	Listed   string    // the store's own note on how Closed finds the gate; kept as it is
	Version  string    // changes with every change of the gate
}

// NewGate is the gate of key as closing closes it, with nothing behind it.
func NewGate(key string, closing Closing) Gate {
	g := Gate{Key: key, Closing: closing, Progress: closing.Progress}
	g.Closing.Progress = Progress{}
	return g
}

// Bounds of a position: what JSON's numbers hold exactly, and how many events of one
// sequence, or none, keep the order in which they came.
const (
	positionBits = 53
	arrivalBits  = 20
)

// Admit gives e its place behind the gate and counts it; false if it is done.
//
// The place is that of its sequence, whatever the order of arrival, since the feed shows
// the events of one transaction in any order. An event whose sequence is not known stands
// behind the one that came before it.
func (g *Gate) Admit(e *ParkedEvent) bool {
	if g.Progress.covers(e) {
		return false
	}
	g.Events++
	g.Last++
	if e.Sequence > 0 {
		g.Sequence = min(e.Sequence, 1<<(positionBits-arrivalBits)-1)
	}
	e.Position = g.Sequence<<arrivalBits + min(g.Last, 1<<arrivalBits-1)
	return true
}

// Release takes events off the count and counts them as done: they were sent, or left out.
func (g *Gate) Release(events []ParkedEvent) {
	g.Events -= int64(len(events))
	for i := range events {
		if e := &events[i]; e.Sequence > 0 {
			g.Progress.Sequence, g.Progress.LSN = max(g.Progress.Sequence, e.Sequence), max(g.Progress.LSN, e.LSN)
		}
	}
}

// Wanted returns what is to become of the gate: what an operator wants, or a retry if it
// was closed for that; nil for nothing.
func (g *Gate) Wanted() *Intent {
	if g.Intent == nil && g.Closing.Auto {
		return &Intent{Verb: VerbRetry, At: g.Closing.At}
	}
	return g.Intent
}
