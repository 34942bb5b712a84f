package broker

// intake is an accepted batch, or scheduled messages that became due.
type intake struct {
	sender *Sender // nil if there is none
	inlet  *inlet
	parts  []part
	shared []*body  // payloads that get records of their own
	hashes []idHash // new ids
	at     int64    // time at which they were accepted
	last   int64    // last sequence number assigned
	// removed are the messages that this batch replaces: scheduled ones of the inlet, or
	// forwarded ones of another holder.
	from     *holder
	removed  []*message
	recorded []bool // for each of removed
	done     func(error)
	numbers  func([]int64, error)
	given    []int64 // sequence numbers, if numbers is set
}

// part is one holder's share of a batch.
type part struct {
	holder   *holder
	messages []*message
}

// send checks a batch and accepts it as a whole.
func (in *inlet) send(batch []Message, o *intake) {
	o.hash(batch)
	var later callbacks
	in.mu.Lock()
	err := in.check(batch)
	if err == nil && o.sender != nil {
		err = o.sender.gone
	}
	if err != nil {
		in.counters.Refused += int64(len(batch))
		in.mu.Unlock()
		o.finish(err)
		return
	}
	in.sendLocked(batch, o, &later)
	in.mu.Unlock()
	later.run()
}

// hash computes the ids for duplicate detection before the lock is taken.
func (o *intake) hash(batch []Message) {
	if o.inlet.history == nil {
		return
	}
	o.hashes = make([]idHash, len(batch))
	for i := range batch {
		o.hashes[i] = o.inlet.hash(&batch[i])
	}
}

// sendLocked accepts a batch that was checked. Called with in.mu.
func (in *inlet) sendLocked(batch []Message, o *intake, later *callbacks) {
	o.at = in.e.now()
	in.lastUsed.Store(o.at)
	in.counters.Accepted += int64(len(batch))
	in.stage(batch, o)
	in.e.submit(o, later)
	in.armHistory()
}

// stage drops duplicates and assigns a sequence number and holders to every other message. It
// reduces hashes to those of new ids.
func (in *inlet) stage(batch []Message, o *intake) {
	o.parts = make([]part, len(in.targets), len(in.targets)+1)
	fresh := o.hashes[:0]
	if in.history != nil {
		in.history.forget(o.at)
	}
	partition := in.partition(batch)
	for i := range batch {
		m := &batch[i]
		if in.history != nil && m.MessageID != "" {
			if !in.history.add(o.hashes[i]) {
				in.counters.Duplicates++
				if o.numbers != nil {
					o.given = append(o.given, 0)
				}
				continue
			}
			fresh = append(fresh, o.hashes[i])
		}
		b := &body{
			payload: m.Payload, id: m.MessageID, session: m.SessionID, hasSession: m.HasSession,
			partition: m.PartitionKey, ttl: int64(m.TTL), owner: &in.ledger,
		}
		sequence := in.rest.nextSequence(partition)
		o.last = sequence
		if o.numbers != nil {
			o.given = append(o.given, sequence)
		}
		if at := nanos(m.ScheduledAt); at > o.at {
			o.keep(b, &message{body: b, sequence: sequence, enqueuedAt: o.at, scheduledAt: at})
			continue
		}
		o.route(b, sequence, 0, nil)
	}
	o.hashes = fresh
	if in.history != nil {
		in.history.note(o.at, len(fresh))
	}
}

// keep adds a scheduled message.
func (o *intake) keep(b *body, m *message) {
	b.refs.Store(1)
	o.inlet.size.Add(int64(len(b.payload)))
	o.put(o.inlet.rest, m)
}

// route assigns a message to every matching target. first is its sequence number at an earlier
// entity, 0 if none.
func (o *intake) route(b *body, sequence, first int64, over *overlay) {
	in := o.inlet
	b.sequence = sequence
	facts := facts{options: &in.e.options, body: b, at: o.at}
	n := 0
	for i, t := range in.targets {
		plain, actions, err := t.matcher.match(&facts)
		if plain || err != nil && t.deadLetterErrors {
			n++
			o.deliver(i, t, b, first, over, err)
		}
		for _, a := range actions {
			changed, err := act(a, &facts)
			if err != nil && !t.deadLetterErrors {
				continue
			}
			if err != nil {
				changed = b.unshared()
			}
			changed.sequence = sequence
			changed.refs.Store(1)
			in.size.Add(int64(len(changed.payload)))
			o.deliver(i, t, changed, first, over, err)
		}
	}
	if n == 0 {
		return
	}
	in.size.Add(int64(len(b.payload)))
	if n > 1 {
		b.shared = true
		o.shared = append(o.shared, b)
	}
	b.retain(n)
}

// deliver assigns a message to the i-th target, or to its dead-letter queue if the rules fail
// or the session is missing.
func (o *intake) deliver(i int, t *target, b *body, first int64, over *overlay, err error) {
	in := o.inlet
	m := &message{
		body: b, firstSeq: first, overlay: over, enqueuedAt: o.at,
		expiresAt: expiry(o.at, b.ttl, in.config.defaultTTL, t.ttl),
	}
	if first == 0 && t.holder != in.rest {
		m.firstSeq = b.sequence
	}
	switch {
	case err != nil:
		o.putDeadLetter(t.holder, m, deadLetterReason{"FilterEvaluationException", err.Error()})
		return
	case t.session && !b.hasSession:
		o.putDeadLetter(t.holder, m, noSession())
		return
	case t.holder == in.rest:
		m.sequence = b.sequence
	default:
		m.sequence = t.holder.nextSequence(partitionOf(b.sequence))
	}
	o.parts[i].holder = t.holder
	o.parts[i].messages = append(o.parts[i].messages, m)
}

// putDeadLetter assigns a message to the dead-letter queue of h.
func (o *intake) putDeadLetter(h *holder, m *message, why deadLetterReason) {
	m.sequence = h.deadLetter.nextSequence(partitionOf(m.body.sequence))
	m.overlay = why.addTo(m.overlay, h.path)
	o.put(h.deadLetter, m)
}

func (o *intake) put(h *holder, m *message) {
	for i := range o.parts {
		if p := &o.parts[i]; p.holder == h {
			p.messages = append(p.messages, m)
			return
		}
	}
	o.parts = append(o.parts, part{h, []*message{m}})
}

func (o *intake) write(w *writer) {
	for _, b := range o.shared {
		w.putPayload(b)
	}
	for _, p := range o.parts {
		for _, m := range p.messages {
			w.putMessage(&p.holder.numbering, m)
		}
	}
	for i, m := range o.removed {
		w.deleteMessage(o.from.id, m, o.recorded[i])
	}
	w.sequence(&o.inlet.rest.numbering)
	if len(o.hashes) > 0 {
		w.putHistory(o.inlet.rest.id, o.at, o.last, o.hashes)
	}
}

func (o *intake) publish(later *callbacks) {
	for _, p := range o.parts {
		if len(p.messages) > 0 {
			p.holder.add(p.messages, later)
		}
	}
}

func (o *intake) finish(err error) {
	switch {
	case o.numbers != nil && err != nil:
		o.numbers(nil, err)
	case o.numbers != nil:
		o.numbers(o.given, nil)
	case o.done != nil:
		o.done(err)
	}
}

// expiry returns when a message expires: after the shortest time to live that is set.
func expiry(at int64, ttls ...int64) int64 {
	shortest := int64(0)
	for _, t := range ttls {
		if t > 0 && (shortest == 0 || t < shortest) {
			shortest = t
		}
	}
	if end := at + shortest; shortest > 0 && end > at {
		return end
	}
	return 0
}
