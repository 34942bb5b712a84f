package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/servicebus"
	"feedbox/infrastructure/servicebus/subscriber"
	"feedbox/infrastructure/verify"
)

// A member of the consumer asks for so many messages at a time, and settles so many at
// a time, each of its settlers a few in a row.
const (
	receiveAtOnce = 500
	settlers      = 64
	settleInARow  = 8
)

// member is one connection of the consumer with one receiver.
type member struct {
	client   *servicebus.Client
	receiver *azservicebus.Receiver
	got      []arrival // as they came
}

// arrival is a message with the sequence number that the broker gave it.
type arrival struct {
	sequence int64
	message  verify.Message
}

// connect opens the connection. What is settled at the same time leaves in one piece
// (subscriber.Gather).
func (m *member) connect(ctx context.Context, b *broker) error {
	client, err := servicebus.NewClient(servicebus.ClientConfig{
		ConnectionString: b.bus.ConnectionString(),
		Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.bus.Addr())
			if err != nil {
				return nil, err
			}
			return subscriber.Gather(conn), nil
		},
	})
	if err != nil {
		return err
	}
	m.client = client
	if m.receiver, err = client.NewReceiverForSubscription(topic, subscription, nil); err != nil {
		return err
	}
	_, err = m.receiver.PeekMessages(ctx, 1, nil) // connects
	return err
}

// receive takes its share of the messages that are due and completes them.
func (m *member) receive(ctx context.Context, due *atomic.Int64) error {
	settling, ctx := errgroup.WithContext(ctx)
	queue := make(chan []*azservicebus.ReceivedMessage, 2*settlers)
	for range settlers {
		settling.Go(func() error {
			for batch := range queue {
				for _, r := range batch {
					if err := m.receiver.CompleteMessage(ctx, r, nil); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	err := m.read(ctx, due, queue)
	close(queue)
	return errors.Join(err, settling.Wait())
}

// read receives until nothing is due.
//
// A call asks only for what is due and waits until it has it: the client gives back what
// arrives between two calls (receiver.go, newReleaserFunc), and that would come again
// behind later messages.
func (m *member) read(ctx context.Context, due *atomic.Int64, queue chan<- []*azservicebus.ReceivedMessage) error {
	all := &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: time.Hour}
	for {
		left := due.Add(-receiveAtOnce) + receiveAtOnce
		for n := int(min(receiveAtOnce, left)); n > 0; {
			batch, err := m.receiver.ReceiveMessages(ctx, n, all)
			if err != nil {
				return fmt.Errorf("a connection received %d events and no more: %w", len(m.got), err)
			}
			n -= len(batch)
			if err := m.take(ctx, batch, queue); err != nil {
				return err
			}
		}
		if left <= receiveAtOnce {
			return nil
		}
	}
}

func (m *member) take(ctx context.Context, batch []*azservicebus.ReceivedMessage, queue chan<- []*azservicebus.ReceivedMessage) error {
	for _, r := range batch {
		if r.SequenceNumber == nil {
			return fmt.Errorf("message %s has no sequence number", r.MessageID)
		}
		m.got = append(m.got, arrival{*r.SequenceNumber, received(r)})
	}
	for len(batch) > 0 {
		n := min(len(batch), settleInARow)
		select {
		case queue <- batch[:n]:
		case <-ctx.Done():
			return ctx.Err()
		}
		batch = batch[n:]
	}
	return nil
}

// inOrder says if the messages came in the order in which the broker took them.
func (m *member) inOrder() error {
	for i := 1; i < len(m.got); i++ {
		if before, after := m.got[i-1], m.got[i]; before.sequence >= after.sequence {
			return fmt.Errorf("message %s, number %d of the subscription, came before %s, number %d",
				before.message.ID, before.sequence, after.message.ID, after.sequence)
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

func (m *member) close(ctx context.Context) error {
	if m.client == nil {
		return nil
	}
	return m.client.Close(ctx)
}
