// Package recorder receives every session of a subscription and tells of each message in
// the order of its arrival: what a consumer of the topic sees, for package verify to judge.
// Fault tests and the playground of feedbox-dev use it.
//
// A message that the broker delivers again, because it never learnt that the witness has
// it, is told of once. The witness outlives the broker: it connects again.
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

// Arrival is one message as it came.
type Arrival struct {
	verify.Message
	// Created is when the event was raised, on the clock of the service that did; zero if
	// the message does not say.
	Created time.Time
	// Enqueued is when the broker accepted the message, on its clock.
	Enqueued time.Time
	// Number is the broker's sequence number. A message that the broker delivers again
	// keeps its number; one that was sent twice has two.
	Number int64
}

// Witness receives until it is stopped.
type Witness struct {
	topic, subscription string
	seen                func(Arrival)
	client              *azservicebus.Client
	cancel              context.CancelFunc
	done                sync.WaitGroup

	mu          sync.Mutex         // guards what follows, and the order of seen
	numbers     map[int64]struct{} // of messages that were told of, lately
	before      map[int64]struct{} // those before them
	redelivered int
}

// remembered is how many numbers are kept in each of the two maps.
const remembered = 200_000

// closeTimeout bounds the goodbye to the broker.
const closeTimeout = 5 * time.Second

// Start begins to receive with a number of concurrent sessions. seen is called for one
// message after the other and must not block.
func Start(ctx context.Context, connectionString, topic, subscription string, sessions int, seen func(Arrival)) (*Witness, error) {
	client, err := azservicebus.NewClientFromConnectionString(connectionString, &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: 200 * time.Millisecond},
	})
	if err != nil {
		return nil, err
	}
	w := &Witness{topic: topic, subscription: subscription, seen: seen, client: client, numbers: map[int64]struct{}{}}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for range sessions {
		w.done.Go(func() { w.receive(ctx) })
	}
	return w, nil
}

// Stop ends the witness and waits for it. It can be called twice.
func (w *Witness) Stop() {
	w.cancel()
	w.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout) //nolint:forbidigo // the caller's may have ended
	defer cancel()
	_ = w.client.Close(ctx) // all that mattered was settled
}

// Redelivered is how many messages the broker delivered again.
func (w *Witness) Redelivered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.redelivered
}

func (w *Witness) receive(ctx context.Context) {
	for ctx.Err() == nil {
		accept, cancel := context.WithTimeout(ctx, 5*time.Second)
		session, err := w.client.AcceptNextSessionForSubscription(accept, w.topic, w.subscription, nil)
		cancel()
		if err != nil {
			pause(ctx, 50*time.Millisecond) // the broker may be gone
			continue                        // none has messages, or the witness is being stopped
		}
		w.drain(ctx, session)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		_ = session.Close(closing) // its lock expires otherwise
		cancel()
	}
}

// drain takes what the session holds now and leaves it, so that a few receivers
// serve many sessions. It asks for one message at a time and never again after a
// time-out: between two calls the client gives back what arrives unasked
// (azservicebus, receiver.go, newReleaserFunc), and the next call may be faster,
// which would look like a breach of order.
func (w *Witness) drain(ctx context.Context, session *azservicebus.SessionReceiver) {
	for {
		wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		batch, err := session.ReceiveMessages(wait, 1, nil)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || len(batch) == 0 {
			return
		}
		for _, m := range batch {
			w.keep(m)
			settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			err := session.CompleteMessage(settle, m, nil)
			cancel()
			if err != nil {
				return // it comes again, unless the broker knows
			}
		}
	}
}

// keep tells of a message unless it was delivered before.
func (w *Witness) keep(m *azservicebus.ReceivedMessage) {
	a := read(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	_, lately := w.numbers[a.Number]
	_, before := w.before[a.Number]
	if lately || before {
		w.redelivered++
		return
	}
	if len(w.numbers) == remembered {
		w.before, w.numbers = w.numbers, make(map[int64]struct{}, remembered)
	}
	w.numbers[a.Number] = struct{}{}
	w.seen(a)
}

func read(m *azservicebus.ReceivedMessage) Arrival {
	var data struct {
		AggregateVersion int64 `json:"aggregateVersion"`
		Sequence         int64 `json:"sequence"`
	}
	_ = json.Unmarshal(m.Body, &data) // a body that is no event shows up as a breach
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
