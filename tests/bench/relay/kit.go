package relay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/Azure/go-amqp"
	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/bench/measure"
)

const (
	kitEvents   = 10 // of a session
	kitSessions = 64 // accepted at once
)

// kit measures the consumer kit with sessions of ten events: it accepts a session, handles its
// events in order and releases it. The floor does that with go-amqp alone, without a handler, an inbox
// or the renewal of locks.
func kit(ctx context.Context, r *measure.Run) error {
	sessions, rounds := 2000, 5
	if r.Quick {
		sessions, rounds = 200, 1
	}
	r.Step("consumer kit: %d sessions of %d events", sessions, kitEvents)
	turn := func(receive func(ctx context.Context, b *broker, sessions int) error) measure.Turn {
		return func(ctx context.Context) (measure.Sample, error) { return ofSessions(ctx, sessions, receive) }
	}
	sides, err := measure.Alternate(ctx, rounds, turn(receiveByKit), turn(receiveAlone))
	if err != nil {
		return err
	}
	sample, floor := sides[0], sides[1]
	cost := measure.Micros(sample.PerOperation())
	r.Add(
		measure.Rate("consumer kit, sessions of 10 events", sample.Rate(), "events/s").OverRounds(sample, floor).Using(sample.PerOperation(), floor.PerOperation()).Noting("broker included; floor: go-amqp alone"),
		measure.Cost("go-amqp alone: an event of 10 of a session", measure.Micros(floor.PerOperation()), "µs of CPU"),
		measure.Cost("consumer kit: an event of 10 of a session", cost, "µs of CPU").Wants(measure.AtMost(60)),
		measure.Cost("consumer kit: a session of 10 events", cost*kitEvents/1000, "ms of CPU").Wants(measure.AtMost(0.5)),
	)
	return nil
}

// ofSessions measures how a new broker's sessions are received.
func ofSessions(ctx context.Context, sessions int, receive func(ctx context.Context, b *broker, sessions int) error) (sample measure.Sample, err error) {
	b, err := openBroker(ctx, false, true)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	s := Shape{Events: kitEvents, Size: 512}
	for c := range sessions {
		session := key(c)
		var messages []busemu.Message
		for n := 1; n <= kitEvents; n++ {
			messages = append(messages, busemu.Message{
				ID: eventID(c, n), Session: &session, Subject: action, Body: s.event(c, n),
				Properties: map[string]any{"sequence": int64(n), "aggregateVersion": int64(1)},
			})
		}
		if err := b.bus.Send(ctx, topic, messages...); err != nil {
			return sample, err
		}
	}
	return measure.Took(int64(sessions*kitEvents), func() error { return receive(ctx, b, sessions) })
}

func receiveByKit(ctx context.Context, b *broker, sessions int) error {
	running, stop := context.WithTimeout(ctx, turnTimeout)
	defer stop()
	var handled, outOfTurn atomic.Int64
	processor, err := subscriber.NewSessionProcessor(b.namespace(), source, func(context.Context, *consumer.Event) error { return nil }, &subscriber.SessionOptions{
		Sessions: kitSessions,
		Observe: func(_ context.Context, o consumer.Outcome) {
			if o.Verdict != consumer.Fresh || o.Action != consumer.Handled {
				outOfTurn.Add(1)
			}
			if handled.Add(1) == int64(sessions*kitEvents) {
				stop()
			}
		},
	})
	if err != nil {
		return err
	}
	if err := processor.Run(running); err != nil {
		return err
	}
	if handled.Load() < int64(sessions*kitEvents) || outOfTurn.Load() > 0 {
		return fmt.Errorf("the consumer kit handled %d of %d events, %d of them not as the next of their key", handled.Load(), sessions*kitEvents, outOfTurn.Load())
	}
	return nil
}

// receiveAlone accepts, receives, completes and releases with go-amqp, as many sessions at once as the kit, on one
// connection. As in the kit, an AMQP session serves many of the broker's, and completions are confirmed meanwhile.
func receiveAlone(ctx context.Context, b *broker, sessions int) (err error) {
	ctx, stop := context.WithTimeout(ctx, turnTimeout)
	defer stop()
	// The broker's key, by SASL PLAIN, so that no link needs a token of its own.
	conn, err := amqp.Dial(ctx, "amqp://"+b.bus.Addr(), &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(busemu.DefaultKeyName, busemu.DefaultKey)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return err
	}
	var accepted atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range kitSessions {
		group.Go(func() error {
			for accepted.Add(1) <= int64(sessions) {
				if err := receiveSession(ctx, session); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// receiveSession completes the events of the next session of the broker.
func receiveSession(ctx context.Context, session *amqp.Session) error {
	receiver, err := session.NewReceiver(ctx, topic+"/subscriptions/"+subscription, &amqp.ReceiverOptions{
		SettlementMode: amqp.ReceiverSettleModeSecond.Ptr(), Credit: kitEvents,
		Filters: []amqp.LinkFilter{amqp.NewLinkFilter("com.microsoft:session-filter", 0x137000000C, nil)},
	})
	if err != nil {
		return err
	}
	var completing errgroup.Group
	for range kitEvents {
		message, err := receiver.Receive(ctx, nil)
		if err != nil {
			return errors.Join(err, completing.Wait())
		}
		completing.Go(func() error { return receiver.AcceptMessage(ctx, message) })
	}
	return errors.Join(completing.Wait(), receiver.Close(ctx))
}
