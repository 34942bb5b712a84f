package broker

// OpenSender opens a sender. It refuses subscriptions and dead-letter queues (NotAllowed) and
// disabled entities (EntityDisabled). closed is called at most once, when the broker closes
// the sender (DetachForced if the entity is deleted, or DetachAll's reason), not by Close.
func (b *Broker) OpenSender(path string, closed func(error)) (*Sender, error) {
	in, err := b.inletAt(path)
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.maySend(); err != nil {
		return nil, err
	}
	s := &Sender{inlet: in, closed: closed}
	in.senders[s] = struct{}{}
	return s, nil
}

// Send is OpenSender, Send and Close in one call.
func (b *Broker) Send(path string, batch []Message, done func(error)) {
	in, err := b.inletAt(path)
	if err != nil {
		done(err)
		return
	}
	in.send(batch, &intake{inlet: in, done: done})
}
