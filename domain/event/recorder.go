package event

import "slices"

// Recorder keeps the events of one aggregate in order until they are committed. The
// aggregate calls Record where each event counts, such as a line added to an order, and
// RecordLast where only the last state counts, such as an address. The zero value is ready
// to use. A Recorder is not safe for concurrent use.
type Recorder struct {
	events []Event
}

// Record appends e.
func (r *Recorder) Record(e Event) { r.events = append(r.events, e) }

// RecordLast replaces the last event of the same action, or appends e if there is none.
func (r *Recorder) RecordLast(e Event) {
	for i, recorded := range slices.Backward(r.events) {
		if recorded.Action() == e.Action() {
			r.events[i] = e
			return
		}
	}
	r.Record(e)
}

// Len returns the number of recorded events.
func (r *Recorder) Len() int { return len(r.events) }

// Stamped returns the recorded events in order, with the version of the commit and with the
// sequences after last. The recorder keeps its own events unstamped, so that a failed commit
// can be prepared again.
func (r *Recorder) Stamped(version, last int64) []Event {
	stamped := make([]Event, len(r.events))
	for i, e := range r.events {
		stamped[i] = e.Stamped(version, last+int64(i)+1)
	}
	return stamped
}

// Clear removes the events. Call it after they are committed.
func (r *Recorder) Clear() { r.events = nil }
