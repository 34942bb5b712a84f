package broker

// Lookup describes the entity at a path, or returns NotFound. Paths are compared without
// regard to case: queue, topic, topic/Subscriptions/name, and for queues and subscriptions the
// suffixes /$DeadLetterQueue and /$Transfer/$DeadLetterQueue (always empty).
func (c *catalog) Lookup(path string) (EntityInfo, error) {
	if c.closed.Load() {
		return EntityInfo{}, closed()
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	n, ok := c.find(path)
	if !ok {
		return EntityInfo{}, notFound(path)
	}
	var i EntityInfo
	switch {
	case n.queue != nil:
		p := &n.queue.props
		i = EntityInfo{
			Path: n.queue.name, Kind: KindQueue, RequiresSession: p.RequiresSession, Partitioned: p.Partitioned,
			DuplicateDetection: p.RequiresDuplicateDetection, MaxMessageSize: c.messageLimit(p.MaxMessageSizeKB), LockDuration: p.LockDuration, Status: p.Status,
		}
	case n.topic != nil:
		p := &n.topic.props
		i = EntityInfo{
			Path: n.topic.name, Kind: KindTopic, Partitioned: p.Partitioned,
			DuplicateDetection: p.RequiresDuplicateDetection, MaxMessageSize: c.messageLimit(p.MaxMessageSizeKB), Status: p.Status,
		}
	default:
		p := &n.subscription.props
		i = EntityInfo{
			Path: n.subscription.path(), Kind: KindSubscription, RequiresSession: p.RequiresSession,
			LockDuration: p.LockDuration, Status: p.Status, MaxMessageSize: c.messageLimit(n.subscription.topic.props.MaxMessageSizeKB),
		}
	}
	i.MaxBatchSize = i.MaxMessageSize
	i.Path += n.suffix
	switch n.suffix {
	case deadLetterSuffix:
		i.Kind, i.RequiresSession = KindDeadLetter, false
	case transferSuffix:
		i.Kind, i.RequiresSession = KindTransferDeadLetter, false
	}
	return i, nil
}
