package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/store/document"
	"feedbox/tests/bench/measure"
)

// The relay's batches: messages per packed batch, and batches in flight.
const (
	packMessages = 128
	inFlight     = 64
)

// batches returns the messages of the backlog in the batches that the relay makes.
func (s Shape) batches() ([][]*azservicebus.AMQPAnnotatedMessage, error) {
	size := s.Events
	if s.Pack {
		size = (packMessages + s.Events - 1) / s.Events * s.Events // a key is not split
	}
	var out [][]*azservicebus.AMQPAnnotatedMessage
	var batch []*azservicebus.AMQPAnnotatedMessage
	for commit := range s.Commits {
		for c := range s.Contacts {
			for n := range s.Events {
				m, err := message(s.event(c, commit*s.Events+n+1))
				if err != nil {
					return nil, err
				}
				batch = append(batch, m)
			}
			if len(batch) >= size {
				out, batch = append(out, batch), nil
			}
		}
	}
	if len(batch) > 0 {
		out = append(out, batch)
	}
	return out, nil
}

// message returns the message that the relay builds from a document.
func message(raw []byte) (*azservicebus.AMQPAnnotatedMessage, error) {
	m, isEvent, err := document.EventDecoder{}.Decode(raw)
	if err != nil || !isEvent {
		return nil, errors.Join(err, errors.New("the document is no event"))
	}
	contentType := "application/json"
	return &azservicebus.AMQPAnnotatedMessage{
		Properties:         &azservicebus.AMQPAnnotatedMessageProperties{MessageID: m.ID, ContentType: &contentType, Subject: &m.Action, GroupID: &m.Key},
		Body:               azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{m.Body}},
		MessageAnnotations: map[any]any{"x-opt-partition-key": m.Key},
		ApplicationProperties: map[string]any{
			"sequence": m.Sequence, "aggregateVersion": m.AggregateVersion, "traceparent": m.Traceparent,
			"cloudEvents_specversion": "1.0", "cloudEvents_id": m.ID, "cloudEvents_source": "/" + topic, "cloudEvents_type": m.Action, "cloudEvents_time": m.CreatedAt,
		},
	}, nil
}

// sendAlone sends batches through azservicebus to a new broker.
func sendAlone(ctx context.Context, s Shape, batches [][]*azservicebus.AMQPAnnotatedMessage) (sample measure.Sample, err error) {
	b, err := openBroker(ctx, s.Disk, false)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	client, err := azservicebus.NewClientFromConnectionString(b.bus.ConnectionString(), nil)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, client.Close(context.WithoutCancel(ctx))) }()
	sender, err := client.NewSender(topic, nil)
	if err != nil {
		return sample, err
	}
	if _, err := sender.NewMessageBatch(ctx, nil); err != nil { // connects
		return sample, err
	}
	return measure.Took(int64(s.total()), func() error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(inFlight)
		for _, messages := range batches {
			group.Go(func() error { return sendBatch(ctx, sender, messages) })
		}
		return group.Wait()
	})
}

func sendBatch(ctx context.Context, sender *azservicebus.Sender, messages []*azservicebus.AMQPAnnotatedMessage) error {
	batch, err := sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return err
	}
	for i, m := range messages {
		err := batch.AddAMQPAnnotatedMessage(m, nil)
		if errors.Is(err, azservicebus.ErrMessageTooLarge) && i > 0 { // full: the rest goes into the next one
			if err := sender.SendMessageBatch(ctx, batch, nil); err != nil {
				return err
			}
			return sendBatch(ctx, sender, messages[i:])
		}
		if err != nil {
			return fmt.Errorf("add a message: %w", err)
		}
	}
	return sender.SendMessageBatch(ctx, batch, nil)
}
