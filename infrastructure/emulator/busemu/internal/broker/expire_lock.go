package broker

// ExpireLock ends the lock of a message now, for tests.
func (b *Broker) ExpireLock(path string, token LockToken) error {
	h, err := b.holderAt(path)
	if err != nil {
		return err
	}
	var later callbacks
	defer later.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.find(token)
	if m == nil {
		return lockLost()
	}
	now := b.now()
	h.loseLock(m, now, &later)
	h.serve(now, &later)
	h.arm()
	return nil
}
