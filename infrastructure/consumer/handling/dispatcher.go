package handling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"feedbox/infrastructure/consumer"
)

// Dispatcher handles the events of a key in order and different keys in parallel, for brokers whose
// queues mix keys. It has a queue and a goroutine for each key that has events.
//
//	an event:          first of its key, permit            handled, dropped
//	        [waiting] ---------------------> [handled] ------------------> settled
//	            ^                               |   |      final error, Attempts exceeded
//	            +----------- backoff -----------+   +--------------------> dead-lettered
//	                  failed, after a gap                      or parked (Options.Park)
//
// An event whose Context has ended is removed in every state, because the broker redelivers it. A
// redelivered event waits until the running handler of its key has returned. No event leaves
// [waiting] after Run's context has ended.
type Dispatcher struct {
	runner        Runner
	inbox         consumer.Inbox
	attempts      int
	gapDeliveries int
	deliveryLimit int
	parking       *Parking      // nil: off
	permits       chan struct{} // one held for each event that is being handled

	mu      sync.Mutex             // guards queues
	queues  map[string][]*Delivery // by key; a key has an entry while it has a goroutine
	serving sync.WaitGroup         // goroutines of keys
}

// Delivery is one delivery of an event by the broker.
type Delivery struct {
	Event *consumer.Event
	// Context ends when the broker may deliver the event to another consumer.
	Context context.Context //nolint:containedctx // each delivery has its own, and one goroutine handles many
	// Complete settles the event with the broker and passes the result to Dispatcher.Settled.
	Complete func(out consumer.Outcome)
	// DeadLetter stores a copy of the event in the dead-letter queue. The event itself is
	// completed afterwards.
	DeadLetter func(ctx context.Context, reason *consumer.DeadLetterError) error
	// WakeUp is true for a message that is no event: the owner of Event.Key looks for an intent of an
	// operator. Outcome.Event is nil when it is completed.
	WakeUp bool
	// Refused, if set, dead-letters the event without the handler. It is for messages whose events are not
	// known, so they are neither parked, dropped nor recorded in the inbox.
	Refused *consumer.DeadLetterError

	progress        Progress
	failures        int // consecutive, of any kind
	handlerFailures int
}

// NewDispatcher returns a dispatcher of a source without events. advise may be nil.
func NewDispatcher(source Source, advise func(err error) Advice, handler consumer.Handler, o consumer.Options) (*Dispatcher, error) {
	d := &Dispatcher{
		runner: Runner{
			Source: source, Advise: advise, Handler: handler, RetryDelay: o.RetryDelay, RetryDelayMax: o.RetryDelayMax, DrainTimeout: o.DrainTimeout, Policies: o.Policies,
			Observe: o.Observe, Log: o.Logger, Meters: o.Meters, Tracers: o.Tracers,
		},
		inbox: o.Inbox, attempts: cmp.Or(o.Attempts, 10), gapDeliveries: cmp.Or(o.GapDeliveries, 3),
		queues: make(map[string][]*Delivery),
	}
	if d.inbox == nil {
		d.inbox = consumer.NewMemoryInbox(0)
	}
	if o.Concurrency < 0 {
		return nil, errors.New("option Concurrency must be positive")
	}
	d.permits = make(chan struct{}, cmp.Or(o.Concurrency, 8))
	err := d.runner.Init()
	if err == nil {
		d.parking, err = NewParking(o.Park, o.ParkedPoll, d.inbox, &d.runner)
	}
	return d, err
}

// WakeBy sets a function that sends a message for the owner of key, which becomes a delivery with WakeUp.
// It must be called before Run.
func (d *Dispatcher) WakeBy(send func(ctx context.Context, key string) error) {
	if d.parking != nil {
		d.parking.wake = send
	}
}

// LimitDeliveries sets the number of deliveries to a handler after which an event is dead-lettered. It must
// be called before Run. The inbox must outlive the process, because it counts the deliveries.
func (d *Dispatcher) LimitDeliveries(n int) { d.deliveryLimit = n }

// Log returns the log of the consumer.
func (d *Dispatcher) Log() *slog.Logger { return d.runner.Log }

// Receiver receives from the broker and adds deliveries. Their contexts are derived from working.
type Receiver func(ctx, working context.Context) error

// Run calls each receiver repeatedly until ctx ends, and with a backoff after an error. It returns
// when the receivers have returned and no handler runs, which DrainTimeout bounds. Before it returns
// it calls release to abandon unsettled events.
func (d *Dispatcher) Run(ctx context.Context, receivers []Receiver, release func(ctx context.Context)) {
	working, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var receiving sync.WaitGroup
		for _, r := range receivers {
			receiving.Go(func() { d.receive(ctx, working, r) })
		}
		if d.parking != nil {
			receiving.Go(func() { d.parking.Poll(ctx, d.parking.send) })
		}
		receiving.Wait()
		d.serving.Wait()
		release(context.WithoutCancel(ctx))
	}()
	d.runner.Drain(ctx, done, cancel)
}

func (d *Dispatcher) receive(ctx, working context.Context, receiver Receiver) {
	for failures := 0; ctx.Err() == nil; {
		err := receiver(ctx, working)
		if err == nil {
			d.runner.ReceivedAgain(ctx, d.runner.Source.Destination, failures)
			failures = 0
		} else if ctx.Err() == nil {
			failures++
			d.runner.NotReceived(ctx, d.runner.Source.Destination, err, failures)
			Wait(ctx, ctx, d.runner.Backoff(failures))
		}
	}
}

// Add appends a delivery to the queue of its key. ctx is the context of Run.
func (d *Dispatcher) Add(ctx context.Context, m *Delivery) {
	d.runner.Received(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	key := m.Event.Key
	waiting, running := d.queues[key]
	d.queues[key] = append(waiting, m)
	if !running {
		d.serving.Go(func() { d.serve(ctx, key) })
	}
}

// serve handles the deliveries of a key until its queue is empty.
func (d *Dispatcher) serve(ctx context.Context, key string) {
	k := &KeyProcessor{Runner: &d.runner, Inbox: d.inbox, GapDeliveries: d.gapDeliveries, DeliveryLimit: d.deliveryLimit, Parking: d.parking}
	loaded := false
	for m := d.next(key, k); m != nil; m = d.next(key, k) {
		if !d.acquirePermit(ctx, m) {
			d.runner.Released(ctx)
			loaded = false // see the end of the loop
			continue
		}
		if m.WakeUp {
			if d.parking != nil {
				d.parking.Drain(m.Context, key)
			}
			<-d.permits
			d.runner.Released(ctx)
			m.Complete(consumer.Outcome{})
			loaded = false
			continue
		}
		out := consumer.Outcome{Event: m.Event}
		handlerFailed := m.Refused != nil
		if handlerFailed {
			out.Err = m.Refused
		} else {
			if !loaded {
				out.Err = k.Load(m.Context, key)
			}
			if loaded = out.Err == nil; loaded {
				handlerFailed = k.Process(m.Context, &out, &m.progress)
			}
		}
		<-d.permits
		// If the lock was lost, another process may have handled or parked the event, and later ones.
		if !d.settle(ctx, k, m, out, handlerFailed) || m.Context.Err() != nil {
			loaded = false
		}
	}
}

// next removes the next delivery from the queue of a key. If the first one comes after a gap, next
// returns the first delivery that does not. If the queue is empty, next deletes it and returns nil.
func (d *Dispatcher) next(key string, k *KeyProcessor) *Delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting := d.queues[key]
	if len(waiting) == 0 {
		delete(d.queues, key)
		return nil
	}
	i := 0
	if k.IsGap(waiting[0].Event) {
		i = max(0, slices.IndexFunc(waiting, func(m *Delivery) bool { return !k.IsGap(m.Event) }))
	}
	m := waiting[i]
	d.queues[key] = slices.Delete(waiting, i, i+1)
	return m
}

// acquirePermit blocks until m may be handled. It reports false if m must not be handled any more.
func (d *Dispatcher) acquirePermit(ctx context.Context, m *Delivery) bool {
	if ctx.Err() != nil || m.Context.Err() != nil {
		return false
	}
	select {
	case d.permits <- struct{}{}:
		if ctx.Err() == nil && m.Context.Err() == nil {
			return true
		}
		<-d.permits
	case <-ctx.Done():
	case <-m.Context.Done():
	}
	return false
}

// settle completes or dead-letters a delivery, or inserts it at the front of its queue again and waits
// for the backoff. It reports whether the mark of k is still that of the inbox.
func (d *Dispatcher) settle(ctx context.Context, k *KeyProcessor, m *Delivery, out consumer.Outcome, handlerFailed bool) (loaded bool) {
	loaded = out.Err == nil || handlerFailed && !errors.Is(out.Err, consumer.ErrParking) || IsWait(out.Err)
	if handlerFailed && m.Context.Err() == nil && !IsUnavailable(out.Err) {
		m.handlerFailures++
		if reason := d.deadLetterReason(m, out.Err); reason != nil {
			loaded = d.refuse(ctx, k, m, &out, reason)
		}
	}
	if out.Err == nil || slices.Contains([]consumer.Action{consumer.DeadLettered, consumer.Parked, consumer.Dropped}, out.Action) {
		d.runner.Released(ctx)
		m.Complete(out)
		return loaded
	}
	pause := d.runner.BackoffOf(m.Event, 1)
	if !IsUntried(out.Err) {
		out.Action = consumer.Abandoned
		d.runner.Observe(m.Context, out)
		m.failures++
		if !IsWait(out.Err) {
			m.Event.DeliveryCount++
		}
		pause = d.runner.BackoffOf(m.Event, m.failures)
	}
	d.mu.Lock()
	d.queues[m.Event.Key] = slices.Insert(d.queues[m.Event.Key], 0, m)
	d.mu.Unlock()
	Wait(ctx, m.Context, pause)
	return loaded
}

// refuse parks, drops or dead-letters an event and sets the action of out. If it fails, the action stays Handled.
// It reports whether the mark of k is that of the inbox.
func (d *Dispatcher) refuse(ctx context.Context, k *KeyProcessor, m *Delivery, out *consumer.Outcome, reason *consumer.DeadLetterError) (loaded bool) {
	if m.Refused == nil && k.Parks(m.Event) {
		err := k.Park(m.Context, m.Event, reason, m.handlerFailures)
		if err != nil {
			out.Err = err
			return false
		}
		out.Action = consumer.Parked
		return true
	}
	if m.Refused == nil && d.runner.Drops(m.Event) {
		return k.Drop(m.Context, out, reason)
	}
	if err := m.DeadLetter(m.Context, reason); err != nil {
		out.Err = fmt.Errorf("dead-letter event %s: %w", m.Event.ID, err)
		return true
	}
	out.Action = consumer.DeadLettered
	if m.Refused != nil {
		return true
	}
	if err := k.Record(m.Context, m.Event); err != nil {
		d.runner.Log.WarnContext(ctx, "dead letter not recorded in the inbox", "error", err)
		return false
	}
	return true
}

// Settled reports the outcome of a completed delivery to the observer. err is the error of the
// settlement. A wake-up has no outcome.
func (d *Dispatcher) Settled(ctx context.Context, out consumer.Outcome, err error) {
	if out.Event == nil {
		return
	}
	if err != nil {
		out.Action, out.Err = consumer.Unsettled, errors.Join(out.Err, err)
	}
	d.runner.Observe(ctx, out)
}

// deadLetterReason returns why a failed event is dead-lettered, or nil if it is retried.
func (d *Dispatcher) deadLetterReason(m *Delivery, err error) *consumer.DeadLetterError {
	if errors.Is(err, consumer.Defer()) {
		return &consumer.DeadLetterError{Reason: consumer.ReasonCannotDefer, Err: errors.New("this broker cannot defer an event")}
	}
	return d.runner.Refusal(m.Event, err, m.handlerFailures, d.attempts)
}
