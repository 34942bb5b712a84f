package servicebus

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/bench/measure"
)

// Growth measures the cost of a message with a growing number of sessions in a queue. Messages
// are sent to the sessions in turn, in batches of 100, and received session by session. Sizes
// take turns, so that disturbances of the machine affect all of them equally.
func Growth(ctx context.Context, r *measure.Run) error {
	sizes := []int{1_000, 10_000, 100_000}
	rounds, messages, accept := 3, 200_000, 1000
	if r.Quick {
		sizes, rounds, messages, accept = []int{50, 200}, 1, 1000, 30
	}
	for _, k := range []kind{memoryKind, diskKind} {
		r.Step("sending to %v sessions, %s", sizes, k)
		err := grow(ctx, r, fmt.Sprintf("send to sessions, %s,", k), rounds, sizes, func(n int) measure.Turn {
			return sendToSessions(k, n, messages)
		})
		if err != nil {
			return err
		}
		r.Step("receiving from %v sessions, %s", sizes, k)
		err = grow(ctx, r, fmt.Sprintf("receive from sessions, %s,", k), rounds, sizes, func(n int) measure.Turn {
			return receive{backlog: n, accept: accept, perSession: 2, inFlight: 16}.on(k)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func grow(ctx context.Context, r *measure.Run, name string, rounds int, sizes []int, at func(size int) measure.Turn) error {
	turns := make([]measure.Turn, len(sizes))
	for i, n := range sizes {
		turns[i] = at(n)
	}
	sums, err := measure.Alternate(ctx, rounds, turns...)
	if err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	points := make([]measure.Point, len(sizes))
	for i, n := range sizes {
		points[i] = measure.Point{At: strconv.Itoa(n), Cost: measure.Micros(sums[i].PerOperation())}
	}
	r.Add(measure.Growth(name, "µs CPU/msg", points...)...)
	return nil
}

// sendToSessions sends messages to the sessions in turn.
func sendToSessions(k kind, sessions, messages int) measure.Turn {
	const inBatch, inFlight = 100, 16
	return turn(k, busemu.Queue{Name: queueName, RequiresSession: true}, func(ctx context.Context, b *broker) (measure.Sample, error) {
		sender, err := b.sender(ctx)
		if err != nil {
			return measure.Sample{}, err
		}
		var next atomic.Int64
		sample, err := measure.Took(int64(messages), func() error {
			return together(ctx, inFlight, func(ctx context.Context) error {
				for {
					last := next.Add(inBatch)
					if last > int64(messages) {
						return nil
					}
					if err := sendBatch(ctx, sender, last-inBatch, last, sessions); err != nil {
						return err
					}
				}
			})
		})
		if err != nil {
			return measure.Sample{}, err
		}
		return sample, b.accepted(int64(messages))
	})
}

func sendBatch(ctx context.Context, sender *azservicebus.Sender, from, to int64, sessions int) error {
	batch, err := sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return err
	}
	for n := from; n < to; n++ {
		session := "s" + strconv.FormatInt(n%int64(sessions), 10)
		if err := batch.AddMessage(&azservicebus.Message{Body: make([]byte, bodySize), SessionID: &session}, nil); err != nil {
			return err
		}
	}
	return sender.SendMessageBatch(ctx, batch, nil)
}
