package relay

import "time"

// Gate is the state of a parked key.
type Gate struct {
	Key      string
	Closing  Closing
	Progress Progress  // the events that are done: sent or skipped
	Events   int64     // number of parked events
	Arrivals int64     // number of events that were ever parked
	Sequence int64     // of the last parked event that has one
	Intent   *Intent   // of an operator; nil = none
	Attempts int       // number of abandoned drains
	Error    string    // of the last abandoned drain; "" = none
	TriedAt  time.Time // time of the last abandoned drain; zero = none
	Listed   string    // private to the store, for ParkedStore.Closed
	Version  string    // changes with every change of the gate
}

// NewGate returns a closed gate of key without parked events.
func NewGate(key string, closing Closing) Gate {
	g := Gate{Key: key, Closing: closing, Progress: closing.Progress}
	g.Closing.Progress = Progress{}
	return g
}

// A position has 53 bits, because JSON numbers are exact up to that size. The lower 20 hold
// the order of arrival among events with the same sequence, or with none.
const (
	positionBits = 53
	arrivalBits  = 20
)

// Admit counts e and sets its position. It returns false if e is done and need not be parked.
//
// Events are ordered by sequence and not by arrival, because the feed returns the events of
// one transaction in any order. An event without a sequence follows the event that arrived
// before it.
func (g *Gate) Admit(e *ParkedEvent) bool {
	if g.Progress.covers(e) {
		return false
	}
	g.Events++
	g.Arrivals++
	if e.Sequence > 0 {
		g.Sequence = min(e.Sequence, 1<<(positionBits-arrivalBits)-1)
	}
	e.Position = g.Sequence<<arrivalBits + min(g.Arrivals, 1<<arrivalBits-1)
	return true
}

// MarkDone subtracts sent or skipped events from the count and advances Progress over them.
func (g *Gate) MarkDone(events []ParkedEvent) {
	g.Events -= int64(len(events))
	for i := range events {
		if e := &events[i]; e.Sequence > 0 {
			g.Progress.Sequence, g.Progress.LSN = max(g.Progress.Sequence, e.Sequence), max(g.Progress.LSN, e.LSN)
		}
	}
}

// EffectiveIntent returns the intent of an operator, or a retry if the gate was closed
// automatically, or nil.
func (g *Gate) EffectiveIntent() *Intent {
	if g.Intent == nil && g.Closing.Auto {
		return &Intent{Verb: VerbRetry, At: g.Closing.At}
	}
	return g.Intent
}
