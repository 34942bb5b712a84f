package servicebus

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/bench/measure"
)

// receive describes how messages are received: concurrent receivers each accept the next
// session, receive and complete its messages, and close.
type receive struct {
	backlog    int // number of sessions with messages
	accept     int // number of sessions to receive; 0: all
	perSession int
	inFlight   int
}

func (r receive) String() string {
	return fmt.Sprintf("receive from %d sessions x%d", r.backlog, r.inFlight)
}

func (r receive) on(k kind) measure.Turn {
	queue := busemu.Queue{Name: queueName, RequiresSession: true, LockDuration: 5 * time.Minute}
	return turn(k, queue, func(ctx context.Context, b *broker) (measure.Sample, error) {
		if err := r.fill(ctx, b); err != nil {
			return measure.Sample{}, err
		}
		sessions := r.accept
		if sessions == 0 {
			sessions = r.backlog
		}
		messages := int64(sessions * r.perSession)
		sample, err := measure.Took(messages, func() error {
			var left atomic.Int64
			left.Store(int64(sessions))
			return together(ctx, r.inFlight, func(ctx context.Context) error {
				for left.Add(-1) >= 0 {
					if err := r.one(ctx, b.client); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return measure.Sample{}, err
		}
		return sample, b.completed(messages)
	})
}

// fill stores the backlog in the emulator.
func (r receive) fill(ctx context.Context, b *broker) error {
	if b.emu == nil {
		return nil
	}
	batch := make([]busemu.Message, r.perSession)
	for i := range r.backlog {
		session := "s" + strconv.Itoa(i)
		for m := range batch {
			batch[m] = busemu.Message{ID: session + "-" + strconv.Itoa(m), Session: &session, Body: make([]byte, bodySize)}
		}
		if err := b.emu.Send(ctx, queueName, batch...); err != nil {
			return err
		}
	}
	return nil
}

// one receives one session.
func (r receive) one(ctx context.Context, client *azservicebus.Client) error {
	receiver, err := client.AcceptNextSessionForQueue(ctx, queueName, nil)
	if err != nil {
		return err
	}
	for got := 0; got < r.perSession; {
		messages, err := receiver.ReceiveMessages(ctx, r.perSession-got, nil)
		if err != nil {
			return err
		}
		got += len(messages)
		group, ctx := errgroup.WithContext(ctx)
		for _, m := range messages {
			group.Go(func() error { return receiver.CompleteMessage(ctx, m, nil) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return receiver.Close(ctx)
}

// completed checks that the emulator has removed as many messages as were received.
func (b *broker) completed(want int64) error {
	if b.emu == nil {
		return nil
	}
	c, err := b.emu.Counters(queueName)
	if err == nil && (c.Completed != want || c.Abandoned+c.LocksLost+c.DeadLettered != 0) {
		err = fmt.Errorf("%d messages were completed, the broker counts %+v", want, c)
	}
	return err
}

// together runs work n times at once and returns the first error.
func together(ctx context.Context, n int, work func(ctx context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for range n {
		group.Go(func() error { return work(ctx) })
	}
	return group.Wait()
}
