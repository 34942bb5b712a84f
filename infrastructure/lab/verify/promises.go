package verify

import "strings"

// Promise is one of the promises that hold for every run.
type Promise struct{ ID, Text string }

// Promises are those that answers, store and messages tell of, I1 to I5.
var Promises = []Promise{
	{"I1", "a change and its events are stored together or not at all"},
	{"I2", "nothing acknowledged is lost"},
	{"I3", "the events of a key arrive in order, without a gap"},
	{"I4", "no message arrives twice"},
	{"I5", "every message is a stored event"},
}

// PromiseOf returns the ID of the promise that a breach is of, as Verify words it; "" of
// the line that says that there are more.
func PromiseOf(breach string) string {
	id, _, _ := strings.Cut(breach, " ")
	if !strings.HasPrefix(id, "I") {
		return ""
	}
	return id
}

// StoreOfMessages makes up the store that the messages speak of, for a run that has not
// read the store: I2 then compares what clients were told with what arrived, and I3 and I4
// are checked as ever. What Verify says of I1 and I5 means nothing.
func (r *Run) StoreOfMessages() {
	at := map[string]int{} // session: index into r.Aggregates
	known := map[string]bool{}
	for _, m := range r.Messages {
		if !known[m.ID] {
			known[m.ID] = true
			r.Events = append(r.Events, Event{ID: m.ID, Key: m.Session, Action: m.Subject, Version: m.Version, Sequence: m.Sequence})
		}
		i, met := at[m.Session]
		if !met {
			i = len(r.Aggregates)
			at[m.Session] = i
			r.Aggregates = append(r.Aggregates, Aggregate{ID: m.Session})
		}
		a := &r.Aggregates[i]
		a.Version, a.Sequence = max(a.Version, m.Version), max(a.Sequence, m.Sequence)
	}
}
