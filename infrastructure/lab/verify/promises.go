package verify

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

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

// others are the promises that need more evidence, or whose breaches are rare. Tallies has them only if
// they are broken, because a run without the evidence did not check them.
var others = []Promise{
	{"I6", "no position passes an event that the broker has not accepted"},
	{"I7", "every lease has an owner in time, and the leases are balanced"},
	{"I8", "an event that cannot be sent is parked, with its successors and nothing else"},
	{"I9", "memory is bounded, and no goroutine leaks"},
	{"I10", "no event has two ids, and no two events have one id"},
}

// Tally is a promise with the number of its breaches.
type Tally struct {
	Promise
	Broken int
}

// Tallies returns Promises with their breaches, and then every other promise that is broken. Breaches
// without a promise have the ID "other". So the counts of all rows add up to those of broken, which is
// that of a Report.
func Tallies(broken map[string]int) (all []Tally) {
	left := maps.Clone(broken)
	for i, p := range slices.Concat(Promises, others) {
		if n := left[p.ID]; n > 0 || i < len(Promises) {
			all = append(all, Tally{p, n})
		}
		delete(left, p.ID)
	}
	rest := 0
	for _, n := range left {
		rest += n
	}
	if rest > 0 {
		all = append(all, Tally{Promise{"other", "no other finding"}, rest})
	}
	return all
}

// Report is the result of a Run.
type Report struct {
	// Broken counts the breaches of each promise, by its ID; "" for breaches without one.
	Broken map[string]int
	// Examples has some breaches of each broken promise, with the ids involved.
	Examples []string
}

// maxExamples is the number of examples of each promise. It has its own limit, because the many
// breaches of one promise would otherwise hide the few of another.
const maxExamples = 20

// violations is a Report that is being built.
type violations Report

func (v *violations) add(format string, args ...any) {
	breach := fmt.Sprintf(format, args...)
	id := PromiseOf(breach)
	if v.Broken[id]++; v.Broken[id] <= maxExamples {
		v.Examples = append(v.Examples, breach)
	}
}

// Only returns the breaches of the promises that keep selects.
func (r Report) Only(keep func(id string) bool) Report {
	kept := Report{Broken: maps.Clone(r.Broken)}
	maps.DeleteFunc(kept.Broken, func(id string, _ int) bool { return !keep(id) })
	for _, breach := range r.Examples {
		if keep(PromiseOf(breach)) {
			kept.Examples = append(kept.Examples, breach)
		}
	}
	return kept
}

// Lines returns the examples, and a line for each promise that has more breaches.
func (r Report) Lines() []string {
	lines := slices.Clone(r.Examples)
	for _, id := range slices.Sorted(maps.Keys(r.Broken)) {
		if more := r.Broken[id] - maxExamples; more > 0 {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("... and %d more %s", more, id)))
		}
	}
	return lines
}

// PromiseOf returns the ID of the promise that a breach is about; "" for the lines that report
// more breaches.
func PromiseOf(breach string) string {
	id, _, _ := strings.Cut(breach, " ")
	number, ok := strings.CutPrefix(id, "I")
	if _, err := strconv.Atoi(number); !ok || err != nil { // such as "Item 5 is missing"
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
