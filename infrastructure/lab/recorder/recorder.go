// Package recorder receives all sessions of a subscription and reports each message in the
// order of arrival, as evidence for package verify. Fault tests and the playground of
// feedbox-dev use it.
//
// It reports a redelivered message once. It reconnects when the broker restarts.
//
// Goroutines: Start starts one for each concurrent session, and Stop waits for them.
package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/lab/verify"
)

// Arrival is one received message.
type Arrival struct {
	verify.Message
	// Created is the time of the event on the clock of the service that raised it; zero if
	// the message does not contain it.
	Created time.Time
	// Enqueued is the time at which the broker accepted the message, on its clock.
	Enqueued time.Time
	// Number is the broker's sequence number. A redelivered message keeps its number; a
	// message that was sent twice has two.
	Number int64
}

// Recorder receives until Stop.
type Recorder struct {
	topic, subscription string
	seen                func(Arrival)
	client              *azservicebus.Client
	cancel              context.CancelFunc
	done                sync.WaitGroup

	mu          sync.Mutex         // guards the fields below, and the order of seen
	numbers     map[int64]struct{} // of the messages reported last
	before      map[int64]struct{} // of those reported before them
	redelivered int
}

// remembered bounds the numbers in each of the two maps.
const remembered = 200_000

// closeTimeout bounds closing links and connection.
const closeTimeout = 5 * time.Second

// Start starts receiving with a number of concurrent sessions. It calls seen for one message
// at a time; seen must not block.
func Start(ctx context.Context, connectionString, topic, subscription string, sessions int, seen func(Arrival)) (*Recorder, error) {
	client, err := azservicebus.NewClientFromConnectionString(connectionString, &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: 200 * time.Millisecond},
	})
	if err != nil {
		return nil, err
	}
	r := &Recorder{topic: topic, subscription: subscription, seen: seen, client: client, numbers: map[int64]struct{}{}}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for range sessions {
		r.done.Go(func() { r.receive(ctx) })
	}
	return r, nil
}

// Stop stops receiving and waits for the goroutines. It may be called more than once.
func (r *Recorder) Stop() {
	r.cancel()
	r.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout) //nolint:forbidigo // the caller's may have ended
	defer cancel()
	_ = r.client.Close(ctx) // all messages are settled already
}

// Redelivered returns the number of redeliveries.
func (r *Recorder) Redelivered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.redelivered
}

func (r *Recorder) receive(ctx context.Context) {
	for ctx.Err() == nil {
		accept, cancel := context.WithTimeout(ctx, 5*time.Second)
		session, err := r.client.AcceptNextSessionForSubscription(accept, r.topic, r.subscription, nil)
		cancel()
		if err != nil {
			pause(ctx, 50*time.Millisecond) // the broker may be down
			continue                        // no session has messages, or Stop was called
		}
		r.drain(ctx, session)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		_ = session.Close(closing) // its lock expires otherwise
		cancel()
	}
}

// drain receives the messages that the session has now and releases it, so that a few
// receivers serve many sessions. It receives one message at a time and stops after a
// timeout. Otherwise the order could look broken: between two calls the client abandons
// messages that arrive (azservicebus, receiver.go, newReleaserFunc), and the next call may be
// faster than that.
func (r *Recorder) drain(ctx context.Context, session *azservicebus.SessionReceiver) {
	for {
		wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		batch, err := session.ReceiveMessages(wait, 1, nil)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || len(batch) == 0 {
			return
		}
		for _, m := range batch {
			r.keep(m)
			settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			err := session.CompleteMessage(settle, m, nil)
			cancel()
			if err != nil {
				return // it is redelivered, unless the broker has completed it
			}
		}
	}
}

// keep reports a message unless it is a redelivery.
func (r *Recorder) keep(m *azservicebus.ReceivedMessage) {
	a := Read(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, lately := r.numbers[a.Number]
	_, before := r.before[a.Number]
	if lately || before {
		r.redelivered++
		return
	}
	if len(r.numbers) == remembered {
		r.before, r.numbers = r.numbers, make(map[int64]struct{}, remembered)
	}
	r.numbers[a.Number] = struct{}{}
	r.seen(a)
}

// Read decodes a message. Members that it does not have are zero.
func Read(m *azservicebus.ReceivedMessage) Arrival {
	var data struct {
		AggregateVersion int64 `json:"aggregateVersion"`
		Sequence         int64 `json:"sequence"`
	}
	_ = json.Unmarshal(m.Body, &data) // a body that is no event is reported as a breach
	a := Arrival{Message: verify.Message{ID: m.MessageID, Version: data.AggregateVersion, Sequence: data.Sequence}}
	if m.SessionID != nil {
		a.Session = *m.SessionID
	}
	if m.Subject != nil {
		a.Subject = *m.Subject
	}
	if m.EnqueuedTime != nil {
		a.Enqueued = *m.EnqueuedTime
	}
	if m.SequenceNumber != nil {
		a.Number = *m.SequenceNumber
	}
	if created, ok := m.ApplicationProperties["cloudEvents_time"].(string); ok {
		a.Created, _ = time.Parse(time.RFC3339Nano, created) // zero if it is no time
	}
	return a
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
