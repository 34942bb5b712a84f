package handling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"feedbox/infrastructure/consumer"
)

// Lanes give the events of many keys to the handler, where the broker does not keep keys apart:
// each key has a lane.
//
//	an event:          first of its lane, permit           done, dropped
//	        [waiting] ---------------------> [handled] ------------------> settled
//	            ^                               |   |      set aside, Attempts over
//	            +-------- after a pause --------+   +--------------------> dead-lettered
//	                  failed, behind a gap
//
// An event whose Life has ended is dropped from wherever it is: the broker delivers it again.
// What comes of a key meanwhile waits behind what its handler still works on. Once Run's
// context has ended no event leaves [waiting].
type Lanes struct {
	work          Work
	inbox         consumer.Inbox
	attempts      int
	gapDeliveries int
	permits       chan struct{} // one for each event that is handled

	mu    sync.Mutex             // guards lanes
	lanes map[string][]*Delivery // of the keys that have a goroutine
	busy  sync.WaitGroup
}

// Delivery is an event as a broker delivered it.
type Delivery struct {
	Event *consumer.Event
	// Life ends when the broker may give the event to another consumer.
	Life context.Context //nolint:containedctx // it is the delivery's, and a lane takes up one after the other
	// Complete tells the broker that the event is done, and Lanes.Settled how that went.
	Complete func(out consumer.Outcome)
	// DeadLetter stores the event among the dead letters. It is still to be completed.
	DeadLetter func(ctx context.Context, letter *consumer.DeadLetterError) error

	failures int // in a row, of any kind
	refusals int // of the handler
}

// NewLanes returns lanes without events.
func NewLanes(handler consumer.Handler, o consumer.Options) (*Lanes, error) {
	l := &Lanes{
		work: Work{
			Handler: handler, RetryDelay: o.RetryDelay, RetryDelayMax: o.RetryDelayMax, DrainTimeout: o.DrainTimeout, Observe: o.Observe, Log: o.Logger,
		},
		inbox: o.Inbox, attempts: cmp.Or(o.Attempts, 10), gapDeliveries: cmp.Or(o.GapDeliveries, 3),
		lanes: make(map[string][]*Delivery),
	}
	if l.inbox == nil {
		l.inbox = consumer.NewMemoryInbox(0)
	}
	if o.Concurrency < 0 {
		return nil, errors.New("option Concurrency must be positive")
	}
	l.permits = make(chan struct{}, cmp.Or(o.Concurrency, 8))
	return l, l.work.Complete()
}

// Work is what the lanes do with an event.
func (l *Lanes) Work() *Work { return &l.work }

// Receiver adds deliveries for a while. The lives of what it adds end with working.
type Receiver func(ctx, working context.Context) error

// Run has receivers add deliveries until ctx ends, each again and again, after a failure with a
// pause. It returns when they have returned and no handler runs, which the drain's time bounds.
// What is not settled then, leave gives back.
func (l *Lanes) Run(ctx context.Context, receivers []Receiver, leave func(ctx context.Context)) {
	working, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var receiving sync.WaitGroup
		for _, r := range receivers {
			receiving.Go(func() { l.receive(ctx, working, r) })
		}
		receiving.Wait()
		l.busy.Wait()
		leave(context.WithoutCancel(ctx))
	}()
	l.work.Drain(ctx, done, cancel)
}

func (l *Lanes) receive(ctx, working context.Context, again Receiver) {
	for failures := 0; ctx.Err() == nil; {
		err := again(ctx, working)
		if err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			failures++
			l.work.Log.WarnContext(ctx, "receiving failed", "error", err, "failures", failures)
			Wait(ctx, ctx, l.work.Backoff(failures))
		}
	}
}

// Add puts a delivery behind those of its key. ctx is that of Run.
func (l *Lanes) Add(ctx context.Context, d *Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := d.Event.Key
	waiting, running := l.lanes[key]
	l.lanes[key] = append(waiting, d)
	if !running {
		l.busy.Go(func() { l.serve(ctx, key) })
	}
}

// serve works on a lane until it is empty.
func (l *Lanes) serve(ctx context.Context, key string) {
	k := &Key{Work: &l.work, Inbox: l.inbox, GapDeliveries: l.gapDeliveries}
	open := false
	for d := l.next(key, k); d != nil; d = l.next(key, k) {
		if !l.permit(ctx, d) {
			continue
		}
		out := consumer.Outcome{Event: d.Event}
		if !open {
			out.Err = k.Open(d.Life, key)
		}
		refused := false
		if open = out.Err == nil; open {
			refused = k.Apply(d.Life, &out)
		}
		<-l.permits
		if !l.settle(ctx, k, d, out, refused) {
			open = false
		}
	}
}

// next takes the next delivery of a key; nil if there is none, and then the lane is gone. It is
// the first, unless that is behind a gap and what is missing came after it.
func (l *Lanes) next(key string, k *Key) *Delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.lanes[key]
	if len(waiting) == 0 {
		delete(l.lanes, key)
		return nil
	}
	i := 0
	if k.Misses(waiting[0].Event) {
		i = max(0, slices.IndexFunc(waiting, func(d *Delivery) bool { return !k.Misses(d.Event) }))
	}
	d := waiting[i]
	l.lanes[key] = slices.Delete(waiting, i, i+1)
	return d
}

// permit waits for a permit to handle d. It reports false if d is not to be handled any more.
func (l *Lanes) permit(ctx context.Context, d *Delivery) bool {
	if ctx.Err() != nil || d.Life.Err() != nil {
		return false
	}
	select {
	case l.permits <- struct{}{}:
		if ctx.Err() == nil && d.Life.Err() == nil {
			return true
		}
		<-l.permits
	case <-ctx.Done():
	case <-d.Life.Done():
	}
	return false
}

// settle completes a delivery, or puts it back to be handled again after a pause. It reports
// whether the inbox has answered.
func (l *Lanes) settle(ctx context.Context, k *Key, d *Delivery, out consumer.Outcome, refused bool) (answered bool) {
	answered = out.Err == nil || refused || errors.Is(out.Err, errWaitForMissing)
	if refused && d.Life.Err() == nil {
		d.refusals++
		if letter := l.letter(d, out.Err); letter != nil {
			if err := d.DeadLetter(d.Life, letter); err != nil {
				out.Err = fmt.Errorf("dead-letter event %s: %w", d.Event.ID, err)
			} else {
				out.Action = consumer.DeadLettered
				if err := k.Record(d.Life, d.Event); err != nil {
					answered = false
					l.work.Log.WarnContext(ctx, "a dead letter is not marked in the inbox", "error", err)
				}
			}
		}
	}
	if out.Err == nil || out.Action == consumer.DeadLettered {
		d.Complete(out)
		return answered
	}
	out.Action = consumer.PutBack
	l.work.Observe(d.Life, out)
	d.failures++
	d.Event.DeliveryCount++
	l.mu.Lock()
	l.lanes[d.Event.Key] = slices.Insert(l.lanes[d.Event.Key], 0, d)
	l.mu.Unlock()
	Wait(ctx, d.Life, l.work.Backoff(d.failures))
	return answered
}

// Settled has the outcome of a completed delivery observed; err is why the broker has not taken it.
func (l *Lanes) Settled(ctx context.Context, out consumer.Outcome, err error) {
	if err != nil {
		out.Action, out.Err = consumer.Unsettled, errors.Join(out.Err, err)
	}
	l.work.Observe(ctx, out)
}

// letter is what an event is dead-lettered with after an error of its handler; nil if it is to
// be handled again.
func (l *Lanes) letter(d *Delivery, err error) *consumer.DeadLetterError {
	letter, _ := errors.AsType[*consumer.DeadLetterError](err)
	switch {
	case letter != nil:
	case errors.Is(err, consumer.Defer()):
		return &consumer.DeadLetterError{Reason: consumer.ReasonCannotDefer, Err: errors.New("this broker cannot defer an event")}
	case l.attempts > 0 && d.refusals >= l.attempts:
		return &consumer.DeadLetterError{Reason: consumer.ReasonAttempts, Err: err}
	}
	return letter
}
