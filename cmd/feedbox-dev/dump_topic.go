package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"
)

// sessionsAtOnce is how many sessions are emptied side by side.
const sessionsAtOnce = 16

// empty implements broker.
func (emulatedBus) empty(ctx context.Context, e *endpoints, subscription string, idle time.Duration, add func(messageRecord)) error {
	client, err := azservicebus.NewClientFromConnectionString(e.ServiceBusConnectionString, nil)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = client.Close(closing) // all that mattered was settled
	}()
	dump := &topicDump{client: client, topic: e.Topic, subscription: subscription, idle: idle, add: add, turn: make(chan struct{}, 1), emptied: -1}
	group, workers := errgroup.WithContext(ctx)
	for range sessionsAtOnce {
		group.Go(func() error { return dump.work(workers) })
	}
	return errors.Join(group.Wait(), ctx.Err())
}

// topicDump is what the workers that empty a subscription share.
type topicDump struct {
	client              *azservicebus.Client
	topic, subscription string
	idle                time.Duration
	add                 func(messageRecord)
	released            atomic.Int64  // sessions given back, each perhaps before it was empty
	turn                chan struct{} // capacity 1: held to ask for a session
	emptied             int64         // guarded by turn: released when the broker began to find nothing
}

// work empties sessions until none is left.
func (d *topicDump) work(ctx context.Context) error {
	for {
		session, err := d.accept(ctx)
		if err != nil || session == nil {
			return err
		}
		err = d.take(ctx, session)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		_ = session.Close(closing) // its lock expires otherwise
		cancel()
		d.released.Add(1)
		if err != nil {
			return err
		}
	}
}

// accept returns the next session that holds messages, nil if none does.
func (d *topicDump) accept(ctx context.Context) (*azservicebus.SessionReceiver, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for idle := d.idle; ; idle = min(2*idle, answerTimeout) {
		released := d.released.Load()
		if d.emptied == released {
			return nil, nil
		}
		session, err := d.ask(ctx, idle)
		refusal, _ := errors.AsType[*azservicebus.Error](err)
		switch {
		case err == nil || ctx.Err() != nil:
			return session, err
		case refusal != nil && refusal.Code == azservicebus.CodeTimeout:
			d.emptied = released
		case !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		case idle == answerTimeout:
			return nil, fmt.Errorf("the broker did not say within %s whether a session holds messages: %w", idle, err)
		}
	}
}

// ask takes the next session that holds messages, or fails. The client has the broker
// answer shortly before the time is over (azservicebus, session_receiver.go): an end
// without its answer says nothing of the subscription, only that something was slow.
func (d *topicDump) ask(ctx context.Context, idle time.Duration) (*azservicebus.SessionReceiver, error) {
	wait, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	return d.client.AcceptNextSessionForSubscription(wait, d.topic, d.subscription, nil)
}

// take settles the messages of a session one by one: the client may turn the order
// round if it is asked for several (azservicebus, receiver.go, newReleaserFunc).
func (d *topicDump) take(ctx context.Context, session *azservicebus.SessionReceiver) error {
	for {
		wait, cancel := context.WithTimeout(ctx, sessionIdle)
		messages, err := session.ReceiveMessages(wait, 1, nil)
		cancel()
		switch {
		case len(messages) > 0:
		case err == nil || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
			return ctx.Err()
		default:
			return err
		}
		d.add(recordOf(messages[0]))
		if err := session.CompleteMessage(ctx, messages[0], nil); err != nil {
			return err
		}
	}
}

const (
	sessionIdle   = 100 * time.Millisecond // when a session counts as empty: it is offered again if it is not
	answerTimeout = time.Minute            // how long the broker may take to offer a session
)

// recordOf reads what verify needs. A message without it is written as it is, and
// refused by verify.
func recordOf(m *azservicebus.ReceivedMessage) messageRecord {
	var body struct{ AggregateVersion, Sequence int64 }
	_ = json.Unmarshal(m.Body, &body) // a body that is no event has no sequence, which verify refuses
	r := messageRecord{ID: m.MessageID, Version: body.AggregateVersion, Sequence: body.Sequence}
	if m.SessionID != nil {
		r.Session = *m.SessionID
	}
	if m.Subject != nil {
		r.Subject = *m.Subject
	}
	if m.SequenceNumber != nil {
		r.Number = *m.SequenceNumber
	}
	return r
}
