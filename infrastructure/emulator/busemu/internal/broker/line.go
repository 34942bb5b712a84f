package broker

import (
	"slices"
)

// line has the receivers of a holder. Guarded by the holder's mu.
type line struct {
	receivers map[*Receiver]struct{}
	hungry    []*Receiver // with credit, without session; next first
	browsing  []*Receiver
}

// lineUp queues a receiver that has credit.
func (l *line) lineUp(r *Receiver) {
	if r.credit > 0 && !r.hungry {
		r.hungry = true
		l.hungry = append(l.hungry, r)
	}
}

// remove removes a receiver.
func (l *line) remove(r *Receiver) {
	delete(l.receivers, r)
	same := func(x *Receiver) bool { return x == r }
	if r.options.Mode == Browse {
		l.browsing = slices.DeleteFunc(l.browsing, same)
	}
	if r.hungry {
		r.hungry = false
		l.hungry = slices.DeleteFunc(l.hungry, same)
	}
}
