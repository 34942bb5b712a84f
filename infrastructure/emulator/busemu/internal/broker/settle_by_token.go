package broker

// Settle settles a message by its lock token, without its receiver.
func (b *Broker) Settle(path string, token LockToken, o Outcome, done func(error)) {
	h, err := b.holderAt(path)
	if err != nil {
		done(err)
		return
	}
	h.settle(token, o, done)
}
