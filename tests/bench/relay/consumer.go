package relay

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/verify"
)

// connections is how many connections the consumer has. One is served by goroutines in
// a row (go-amqp: one reads, one runs the session, one the receiver, one writes) and
// leaves half a core idle.
const connections = 2

// consumer receives from a subscription without sessions and completes every message.
type consumer struct {
	want    int
	members []*member
}

func (c *consumer) connect(ctx context.Context, b *broker, want int) error {
	c.want = want
	for range connections {
		m := &member{got: make([]arrival, 0, want)}
		c.members = append(c.members, m)
		if err := m.connect(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// receive returns when the last message is completed.
func (c *consumer) receive(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	var due atomic.Int64
	due.Store(int64(c.want))
	for _, m := range c.members {
		group.Go(func() error { return m.receive(ctx, &due) })
	}
	return group.Wait()
}

// messages are all that was received, in the order in which the broker took them: that
// of its sequence numbers. Which connection a message went to says nothing of the
// relay; on each of them the messages must have come in the broker's order.
func (c *consumer) messages() ([]verify.Message, error) {
	var all []arrival
	for _, m := range c.members {
		if err := m.inOrder(); err != nil {
			return nil, err
		}
		all = append(all, m.got...)
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.sequence, b.sequence) })
	messages := make([]verify.Message, len(all))
	for i := range all {
		messages[i] = all[i].message
	}
	return messages, nil
}

func (c *consumer) close(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range c.members {
		group.Go(func() error { return m.close(ctx) })
	}
	return group.Wait()
}
