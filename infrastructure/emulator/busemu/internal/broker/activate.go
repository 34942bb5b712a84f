package broker

// activate enqueues scheduled messages as if they were sent now, with new sequence numbers of
// their partitions. It does not look for duplicates, because that was done when the messages
// were accepted.
func (in *inlet) activate(due []*message, later *callbacks) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.gone {
		return
	}
	o := &intake{inlet: in, from: in.rest, removed: due, at: in.e.now(), parts: make([]part, len(in.targets), len(in.targets)+1)}
	for _, m := range due {
		o.recorded = append(o.recorded, false) // a scheduled message has no state record: nothing can change it
		o.route(m.body.unshared(), in.rest.nextSequence(partitionOf(m.sequence)), 0, nil)
	}
	in.e.submit(o, later)
}
