package relay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/bench/measure"
)

// kit measures the consumer kit with sessions of ten events: it accepts a session, handles its
// events in order and releases it.
func kit(ctx context.Context, r *measure.Run) (err error) {
	sessions := 2000
	if r.Quick {
		sessions = 200
	}
	const events = 10
	b, err := openBroker(ctx, false, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	r.Step("consumer kit: %d sessions of %d events", sessions, events)
	s := Shape{Events: events, Size: 512}
	for c := range sessions {
		session := key(c)
		var messages []busemu.Message
		for n := 1; n <= events; n++ {
			messages = append(messages, busemu.Message{
				ID: eventID(c, n), Session: &session, Subject: action, Body: s.event(c, n),
				Properties: map[string]any{"sequence": int64(n), "aggregateVersion": int64(1)},
			})
		}
		if err := b.bus.Send(ctx, topic, messages...); err != nil {
			return err
		}
	}
	running, stop := context.WithTimeout(ctx, turnTimeout)
	defer stop()
	var handled, outOfTurn atomic.Int64
	processor, err := subscriber.NewSessionProcessor(b.namespace(), source, func(context.Context, *consumer.Event) error { return nil }, &subscriber.SessionOptions{
		Sessions: 64,
		Observe: func(_ context.Context, o consumer.Outcome) {
			if o.Verdict != consumer.Fresh || o.Action != consumer.Handled {
				outOfTurn.Add(1)
			}
			if handled.Add(1) == int64(sessions*events) {
				stop()
			}
		},
	})
	if err != nil {
		return err
	}
	sample, err := measure.Took(int64(sessions*events), func() error { return processor.Run(running) })
	if err != nil {
		return err
	}
	if handled.Load() < int64(sessions*events) || outOfTurn.Load() > 0 {
		return fmt.Errorf("the consumer kit handled %d of %d events, %d of them not as the next of their key", handled.Load(), sessions*events, outOfTurn.Load())
	}
	cost := measure.Micros(sample.PerOperation())
	r.Add(
		measure.Rate("consumer kit, sessions of 10 events", sample.Rate(), "events/s").Using(sample.PerOperation(), 0).Noting("broker included"),
		measure.Cost("consumer kit: an event of 10 of a session", cost, "µs of CPU").Wants(measure.AtMost(60)),
		measure.Cost("consumer kit: a session of 10 events", cost*events/1000, "ms of CPU").Wants(measure.AtMost(0.5)),
	)
	return nil
}
