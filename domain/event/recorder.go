package event

import "slices"

// Recorder keeps the events of one aggregate until they are committed, in order.
// Whether a later event says all that an earlier one of its action did is for the
// aggregate to know: it calls Record where each event counts, as one line added to
// an order and then another, and RecordLast where only the last state does. The zero
// value is empty and ready. It is not safe for concurrent use, as aggregates are not.
type Recorder struct {
	events []Event
}

// Record appends e.
func (r *Recorder) Record(e Event) { r.events = append(r.events, e) }

// RecordLast puts e in the place of the last event of its action, or appends it if
// there is none.
func (r *Recorder) RecordLast(e Event) {
	for i, recorded := range slices.Backward(r.events) {
		if recorded.Action() == e.Action() {
			r.events[i] = e
			return
		}
	}
	r.Record(e)
}

// Len returns how many events are recorded.
func (r *Recorder) Len() int { return len(r.events) }

// Stamped returns the recorded events, in order, as a commit stores them: with
// that version and with the sequences that follow last. The recorder keeps its
// own events unstamped, so a commit that fails can be prepared anew.
func (r *Recorder) Stamped(version, last int64) []Event {
	stamped := make([]Event, len(r.events))
	for i, e := range r.events {
		stamped[i] = e.Stamped(version, last+int64(i)+1)
	}
	return stamped
}

// Clear forgets the events. Call it once they are committed.
func (r *Recorder) Clear() { r.events = nil }
