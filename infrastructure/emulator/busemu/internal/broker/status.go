package broker

import (
	"context"
)

// SetStatus changes an entity's status only, and closes its links.
func (c *catalog) SetStatus(ctx context.Context, path string, s Status) error {
	if err := c.setStatus(ctx, path, s); err != nil {
		return err
	}
	return c.DetachAll(path, detached(path))
}

func (c *catalog) setStatus(ctx context.Context, path string, s Status) error {
	c.mu.RLock()
	n, ok := c.find(path)
	c.mu.RUnlock()
	switch {
	case !ok || n.suffix != "":
		return notFound(path)
	case n.queue != nil:
		i, err := c.Queue(n.queue.name)
		if err == nil {
			i.Status = s
			_, err = c.UpdateQueue(ctx, i.Queue)
		}
		return err
	case n.topic != nil:
		i, err := c.Topic(n.topic.name)
		if err == nil {
			i.Status = s
			_, err = c.UpdateTopic(ctx, i.Topic)
		}
		return err
	}
	i, err := c.Subscription(n.subscription.topic.name, n.subscription.name)
	if err == nil {
		i.Status = s
		_, err = c.UpdateSubscription(ctx, i.Topic, i.Subscription)
	}
	return err
}
