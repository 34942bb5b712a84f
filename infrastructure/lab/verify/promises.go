package verify

import "strings"

// Promise is one of the promises that hold for every run.
type Promise struct{ ID, Text string }

// Promises has I1 to I5, which can be checked with replies, store and messages.
var Promises = []Promise{
	{"I1", "a change and its events are stored together or not at all"},
	{"I2", "nothing acknowledged is lost"},
	{"I3", "the events of a key arrive in order, without a gap"},
	{"I4", "no message arrives twice"},
	{"I5", "every message is a stored event"},
}

// PromiseOf returns the ID of the promise that a breach of Verify is about; "" for the line
// that reports more breaches.
func PromiseOf(breach string) string {
	id, _, _ := strings.Cut(breach, " ")
	if !strings.HasPrefix(id, "I") {
		return ""
	}
	return id
}

// StoreOfMessages derives aggregates and events from the messages, for a run that has not
// read the store. I2 then compares the outcomes of clients with the messages, and I3 and I4
// are checked as usual. Callers must ignore breaches of I1 and I5.
func (r *Run) StoreOfMessages() {
	at := map[string]int{} // session: index into r.Aggregates
	known := map[string]bool{}
	for _, m := range r.Messages {
		if !known[m.ID] {
			known[m.ID] = true
			r.Events = append(r.Events, Event{ID: m.ID, Key: m.Session, Action: m.Subject, Version: m.Version, Sequence: m.Sequence})
		}
		i, seen := at[m.Session]
		if !seen {
			i = len(r.Aggregates)
			at[m.Session] = i
			r.Aggregates = append(r.Aggregates, Aggregate{ID: m.Session})
		}
		a := &r.Aggregates[i]
		a.Version, a.Sequence = max(a.Version, m.Version), max(a.Sequence, m.Sequence)
	}
}
