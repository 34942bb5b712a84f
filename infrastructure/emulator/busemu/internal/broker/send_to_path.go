package broker

// OpenSender opens a sender. closed is called at most once, if the broker ends the
// sender (entity deleted: DetachForced, or DetachAll), not by Close.
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

// Send is OpenSender, Send and Close in one.
func (b *Broker) Send(path string, batch []Message, done func(error)) {
	in, err := b.inletAt(path)
	if err != nil {
		done(err)
		return
	}
	in.send(batch, &intake{inlet: in, done: done})
}
