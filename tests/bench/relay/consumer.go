package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/verify"
)

// consumer receives from a subscription without sessions and completes every message.
type consumer struct {
	want     int
	client   *azservicebus.Client
	receiver *azservicebus.Receiver
	messages []verify.Message // in the order of arrival
}

// The consumer asks for so many messages at a time, and settles that many at a time.
const (
	receiveAtOnce = 500
	settlers      = 32
)

func (c *consumer) connect(ctx context.Context, b *broker, want int) error {
	c.want, c.messages = want, make([]verify.Message, 0, want)
	var err error
	if c.client, err = b.client(); err != nil {
		return err
	}
	if c.receiver, err = c.client.NewReceiverForSubscription(topic, subscription, nil); err != nil {
		return err
	}
	_, err = c.receiver.PeekMessages(ctx, 1, nil) // connects
	return err
}

// receive returns when the last message is completed.
//
// A call asks for no more than is still to come and waits until it has it: the client
// gives back what arrives between two calls (receiver.go, newReleaserFunc), and that
// would come again behind later messages.
func (c *consumer) receive(ctx context.Context) error {
	settling, ctx := errgroup.WithContext(ctx)
	queue := make(chan []*azservicebus.ReceivedMessage, 64)
	for range settlers {
		settling.Go(func() error {
			for batch := range queue {
				for _, m := range batch {
					if err := c.receiver.CompleteMessage(ctx, m, nil); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	err := c.read(ctx, queue)
	close(queue)
	return errors.Join(err, settling.Wait())
}

func (c *consumer) read(ctx context.Context, queue chan<- []*azservicebus.ReceivedMessage) error {
	all := &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: time.Hour}
	for len(c.messages) < c.want {
		batch, err := c.receiver.ReceiveMessages(ctx, min(receiveAtOnce, c.want-len(c.messages)), all)
		if err != nil {
			return fmt.Errorf("%d of %d events were received: %w", len(c.messages), c.want, err)
		}
		for _, m := range batch {
			c.messages = append(c.messages, received(m))
		}
		for len(batch) > 0 {
			n := min(len(batch), receiveAtOnce/settlers)
			select {
			case queue <- batch[:n]:
			case <-ctx.Done():
				return ctx.Err()
			}
			batch = batch[n:]
		}
	}
	return nil
}

func received(m *azservicebus.ReceivedMessage) verify.Message {
	v := verify.Message{ID: m.MessageID}
	if m.SessionID != nil {
		v.Session = *m.SessionID
	}
	if m.Subject != nil {
		v.Subject = *m.Subject
	}
	v.Sequence, _ = m.ApplicationProperties["sequence"].(int64)
	v.Version, _ = m.ApplicationProperties["aggregateVersion"].(int64)
	return v
}

func (c *consumer) close(ctx context.Context) error {
	return c.client.Close(ctx)
}
