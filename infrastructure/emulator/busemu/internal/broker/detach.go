package broker

// SetQuota overrides an entity's size quota in bytes, for tests; 0 restores MaxSizeMB. It is
// not stored.
func (c *catalog) SetQuota(path string, bytes int64) error {
	in, err := c.inletAt(path)
	if err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.config.quotaOverride = bytes
	return nil
}

// DetachAll closes all senders and receivers of an entity with the given error, as the service
// does after an update. On a topic it closes the senders only.
func (c *catalog) DetachAll(path string, reason error) error {
	var later callbacks
	defer later.run()
	c.mu.RLock()
	defer c.mu.RUnlock()
	n, ok := c.find(path)
	if !ok {
		return notFound(path)
	}
	switch {
	case n.queue != nil:
		if n.suffix == "" {
			n.queue.inlet.detachAll(reason, &later)
		}
		n.queue.holders.detachAll(reason, &later)
	case n.topic != nil:
		n.topic.inlet.detachAll(reason, &later)
	default:
		n.subscription.holders.detachAll(reason, &later)
	}
	return nil
}
