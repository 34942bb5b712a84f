package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/lab/recorder"
)

// sessionsAtOnce is the number of sessions that are emptied concurrently.
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
		_ = client.Close(closing) // all messages are settled already
	}()
	dump := &topicDump{client: client, topic: e.Topic, subscription: subscription, idle: idle, add: add, turn: make(chan struct{}, 1), emptied: -1}
	group, workers := errgroup.WithContext(ctx)
	for range sessionsAtOnce {
		group.Go(func() error { return dump.work(workers) })
	}
	return errors.Join(group.Wait(), ctx.Err())
}

// topicDump is the shared state of the workers that empty a subscription.
type topicDump struct {
	client              *azservicebus.Client
	topic, subscription string
	idle                time.Duration
	add                 func(messageRecord)
	released            atomic.Int64  // sessions released, each perhaps before it was empty
	turn                chan struct{} // capacity 1: held while requesting a session
	emptied             int64         // guarded by turn: value of released when the broker last had no session
}

// work empties sessions until no session has messages.
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

// accept returns the next session with messages, nil if there is none.
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
			return nil, fmt.Errorf("no reply from the broker within %s about the next session: %w", idle, err)
		}
	}
}

// ask accepts the next session with messages. The client makes the broker reply shortly
// before the timeout (azservicebus, session_receiver.go). So a timeout without a reply does
// not mean that the subscription is empty, only that something was slow.
func (d *topicDump) ask(ctx context.Context, idle time.Duration) (*azservicebus.SessionReceiver, error) {
	wait, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	return d.client.AcceptNextSessionForSubscription(wait, d.topic, d.subscription, nil)
}

// take settles the messages of a session one by one, because the client may reverse the
// order if it receives several (azservicebus, receiver.go, newReleaserFunc).
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
	sessionIdle   = 100 * time.Millisecond // then a session is released; the broker offers it again if it has messages
	answerTimeout = time.Minute            // of the broker, to offer a session
)

// recordOf returns the record of a message. Missing members stay empty; verify refuses such
// a record.
func recordOf(m *azservicebus.ReceivedMessage) messageRecord {
	a := recorder.Read(m)
	return messageRecord{ID: a.ID, Session: a.Session, Subject: a.Subject, Version: a.Version, Sequence: a.Sequence, Number: a.Number}
}
