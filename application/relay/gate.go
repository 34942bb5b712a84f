package relay

import (
	"cmp"
	"time"
)

// Gate is the state of a parked key.
type Gate struct {
	Key      string
	Closing  Closing
	Progress Progress  // place of the last parked event
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
func NewGate(key string, closing Closing) Gate { return Gate{Key: key, Closing: closing} }

// Progress is the place of an event in the feed. The progress of a gate is that of its last
// parked event: the events of the key up to it were sent, skipped or parked. See doc.go. The
// zero Progress is unknown.
type Progress struct {
	History  string    // of the container; see Ownership
	LSN      int64     // of the transaction
	Ordinal  int64     // as in Message; orders the events of a transaction
	Sequence int64     // as in Message; orders those with the same ordinal, or with none
	Event    string    // id; orders the rest
	At       time.Time // of the commit, by the store's clock; zero = unknown
}

// covers reports whether an event at place e is not after p. An event that was committed later
// is new even if its LSN is lower: after a failover or a merge, LSNs may repeat.
func (p *Progress) covers(e *Progress) bool {
	newer := !p.At.IsZero() && e.At.After(p.At)
	return p.LSN > 0 && e.LSN > 0 && p.History == e.History && !newer &&
		cmp.Or(cmp.Compare(e.LSN, p.LSN), e.inTransaction(p)) <= 0
}

// inTransaction compares two events of one transaction.
func (p *Progress) inTransaction(q *Progress) int {
	return cmp.Or(cmp.Compare(p.Ordinal, q.Ordinal), cmp.Compare(p.Sequence, q.Sequence), cmp.Compare(p.Event, q.Event))
}

// A position has 53 bits, because JSON numbers are exact up to that size. The lower 20 hold
// the order of arrival among events with the same sequence, or with none.
const (
	positionBits = 53
	arrivalBits  = 20
)

// Admit counts e, sets its position and moves the progress of the gate to it. It returns false
// if the progress covers e: it was sent, skipped or parked before. It also does if e.Closing is
// another one than that of g.
//
// Events are ordered by sequence and not by arrival, because after a restart of the feed from
// its beginning earlier events arrive after later ones. An event without a sequence, or with
// ParkedEvent.InOrder and a lower one, follows the event that arrived before it.
func (g *Gate) Admit(e *ParkedEvent) bool {
	if c := e.Closing; g.Progress.covers(&e.Progress) || c != nil && (c.Event != g.Closing.Event || !c.At.Equal(g.Closing.At)) {
		return false
	}
	if e.Progress.LSN > 0 {
		g.Progress = e.Progress
	}
	g.Events++
	g.Arrivals++
	if e.Sequence > 0 && (!e.InOrder || e.Sequence > g.Sequence) {
		g.Sequence = min(e.Sequence, 1<<(positionBits-arrivalBits)-1)
	}
	e.Position = g.Sequence<<arrivalBits + min(g.Arrivals, 1<<arrivalBits-1)
	return true
}

// EffectiveIntent returns the intent of an operator, or a retry if the gate was closed
// automatically, or nil.
func (g *Gate) EffectiveIntent() *Intent {
	if g.Intent == nil && g.Closing.Auto {
		return &Intent{Verb: VerbRetry, At: g.Closing.At}
	}
	return g.Intent
}
