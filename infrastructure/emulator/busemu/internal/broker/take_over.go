package broker

// maxHops is the number of times a message may be forwarded, as at the service.
const maxHops = 4

// takeOver accepts messages forwarded by another entity. It checks each one separately; a
// refused one goes to the dead-letter queue of its old entity.
func (in *inlet) takeOver(from *holder, messages []*message, later *callbacks) {
	in.mu.Lock()
	defer in.mu.Unlock()
	o := &intake{inlet: in, at: in.e.now(), from: from, parts: make([]part, len(in.targets), len(in.targets)+1)}
	if in.history != nil {
		in.history.forget(o.at)
	}
	from.mu.Lock()
	if from.gone {
		from.mu.Unlock()
		return
	}
	for _, m := range messages {
		in.takeOverOne(from, m, o, later)
	}
	from.mu.Unlock() // because publish may lock the holder of an entity that forwards back
	if in.history != nil {
		in.history.note(o.at, len(o.hashes))
	}
	if len(o.removed) > 0 {
		in.lastUsed.Store(o.at)
		in.e.submit(o, later)
		in.armHistory()
	}
}

func (in *inlet) takeOverOne(from *holder, m *message, o *intake, later *callbacks) {
	again := Message{
		Payload: m.body.payload, MessageID: m.body.id, SessionID: m.body.session,
		HasSession: m.body.hasSession, PartitionKey: m.body.partition,
	}
	err := in.check([]Message{again})
	if m.body.hops >= maxHops {
		err = errorf(NotAllowed, "The message was forwarded %d times already.", m.body.hops)
	}
	if err != nil {
		in.counters.Refused++
		from.notForwarded(m, err, later)
		return
	}
	in.counters.Accepted++
	fresh := true
	if in.history != nil && again.MessageID != "" {
		hash := in.hash(&again)
		if fresh = in.history.add(hash); fresh {
			o.hashes = append(o.hashes, hash)
		} else {
			in.counters.Duplicates++
		}
	}
	if fresh {
		b := m.body.unshared()
		b.owner, b.hops = &in.ledger, m.body.hops+1
		o.last = in.rest.nextSequence(in.partition([]Message{again}))
		o.route(b, o.last, m.origin(), m.overlay)
	}
	o.removed = append(o.removed, m)
	o.recorded = append(o.recorded, m.recorded)
	from.forget(m)
}
