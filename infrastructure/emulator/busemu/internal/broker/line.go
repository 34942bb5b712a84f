package broker

import (
	"slices"
)

// line has the receivers of a holder. Guarded by the holder's mu.
type line struct {
	receivers  map[*Receiver]struct{}
	withCredit []*Receiver // with credit, without session; next first
	browsing   []*Receiver
}

// lineUp queues a receiver that has credit.
func (l *line) lineUp(r *Receiver) {
	if r.credit > 0 && !r.withCredit {
		r.withCredit = true
		l.withCredit = append(l.withCredit, r)
	}
}

// remove removes a receiver.
func (l *line) remove(r *Receiver) {
	delete(l.receivers, r)
	same := func(x *Receiver) bool { return x == r }
	if r.options.Mode == Browse {
		l.browsing = slices.DeleteFunc(l.browsing, same)
	}
	if r.withCredit {
		r.withCredit = false
		l.withCredit = slices.DeleteFunc(l.withCredit, same)
	}
}
