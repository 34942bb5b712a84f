package servicebus

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/bench/measure"
)

// send describes how messages are sent: messages per batch (0: single messages), and batches
// or messages in flight.
type send struct{ batch, inFlight int }

func (s send) String() string {
	if s.batch == 0 {
		return fmt.Sprintf("send singles x%d", s.inFlight)
	}
	return fmt.Sprintf("send batches of %d x%d", s.batch, s.inFlight)
}

// messages returns the number of messages per operation.
func (s send) messages() int64 { return int64(max(1, s.batch)) }

// on measures one turn on a broker.
func (s send) on(k kind, length time.Duration) measure.Turn {
	return turn(k, busemu.Queue{Name: queueName}, func(ctx context.Context, b *broker) (measure.Sample, error) {
		sender, err := b.sender(ctx)
		if err != nil {
			return measure.Sample{}, err
		}
		work := s.operation(sender)
		workers := make([]func(context.Context) error, s.inFlight)
		for i := range workers {
			workers[i] = work
		}
		warm, err := measure.Loop(ctx, length/10, workers...)
		if err != nil {
			return measure.Sample{}, err
		}
		sample, err := measure.Loop(ctx, length, workers...)
		if err != nil {
			return measure.Sample{}, err
		}
		sample.Operations *= s.messages()
		return sample, b.accepted(sample.Operations + warm.Operations*s.messages())
	})
}

func (s send) operation(sender *azservicebus.Sender) func(context.Context) error {
	if s.batch == 0 {
		return func(ctx context.Context) error {
			return sender.SendMessage(ctx, &azservicebus.Message{Body: make([]byte, bodySize)}, nil)
		}
	}
	return func(ctx context.Context) error {
		batch, err := sender.NewMessageBatch(ctx, nil)
		if err != nil {
			return err
		}
		for range s.batch {
			if err := batch.AddMessage(&azservicebus.Message{Body: make([]byte, bodySize)}, nil); err != nil {
				return err
			}
		}
		return sender.SendMessageBatch(ctx, batch, nil)
	}
}

// accepted checks that the emulator has accepted as many messages as were sent.
func (b *broker) accepted(want int64) error {
	if b.emu == nil {
		return nil
	}
	c, err := b.emu.Counters(queueName)
	if err == nil && (c.Accepted != want || c.Enqueued != want || c.Refused != 0) {
		err = fmt.Errorf("%d messages were sent, the broker counts %+v", want, c)
	}
	return err
}
