package event

// Recorder keeps the events of one aggregate until they are committed, at most
// one per action: the last one says all a reader needs. The zero value is empty
// and ready. It is not safe for concurrent use, as aggregates are not.
type Recorder struct {
	events []Event
}

// Record appends e. An event of the same action that is already there is
// replaced in its place.
func (r *Recorder) Record(e Event) {
	for i, recorded := range r.events {
		if recorded.Action() == e.Action() {
			r.events[i] = e
			return
		}
	}
	r.events = append(r.events, e)
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
