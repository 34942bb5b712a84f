package subscriber

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Subscriber hands the events of a session subscription to a Handler.
type Subscriber struct {
	source  source
	handler Handler
	opts    Options
}

// Options are the choices of New. Zero means the default.
type Options struct {
	// Sessions is how many sessions are held at a time. Default 8.
	Sessions int
	// Receive is how many events of a session are asked for at a time. Default 1. With
	// more the client may return them out of order: it gives back those that arrive
	// between two calls, one by one (azservicebus, receiver.go, newReleaserFunc), and a
	// call in between gets the next one first. The inbox sees that as a gap and heals it.
	Receive int
	// SessionIdle ends a session without new events. Default 1 s.
	SessionIdle time.Duration
	// SessionMax ends a session that is still busy, so that others get their turn.
	// Default 1 min; negative: never.
	SessionMax time.Duration

	// Inbox drops duplicates. Default: NewMemoryInbox(0).
	Inbox Inbox
	// GapDeliveries is how often an event behind a gap is put back before it is handled
	// all the same. Default 3; negative: handled at once.
	GapDeliveries int
	// RetryDelay is the pause of a session after its event was put back; it doubles with
	// each delivery of the event up to RetryDelayMax. Defaults 1 s and 30 s.
	RetryDelay, RetryDelayMax time.Duration
	// DrainTimeout is how long handlers may go on after cancellation. Default 20 s.
	DrainTimeout time.Duration

	// Observe, if set, is called for every event that was dealt with. It must be quick
	// and safe for concurrent use.
	Observe func(ctx context.Context, o Outcome)
	// Logger takes failures that Run survives. Default: discarded.
	Logger *slog.Logger
}

// Outcome is what became of a delivery.
type Outcome struct {
	Event   *Event
	Verdict Verdict // of the inbox
	Action  Action
	Missing int64 // for a gap: how many events are missing before this one
	Err     error // of the handler, the inbox or the settlement
}

// Action is how a delivery ended.
type Action uint8

const (
	// Handled means that the handler took the event and it was completed.
	Handled Action = iota
	// Dropped means that a duplicate or stale event was completed without the handler.
	Dropped
	// PutBack means that the event will be delivered again.
	PutBack
	// DeadLettered means that the event was moved to the dead-letter queue.
	DeadLettered
	// Unsettled means that the broker did not confirm the settlement; the event may come again.
	Unsettled
)

// String returns the action as it appears in logs and metrics.
func (a Action) String() string {
	switch a {
	case Handled:
		return "handled"
	case Dropped:
		return "dropped"
	case PutBack:
		return "put_back"
	case DeadLettered:
		return "dead_lettered"
	case Unsettled:
		return "unsettled"
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}

// New returns a subscriber to the session subscription of topic. It does no I/O.
func New(client *azservicebus.Client, topic, name string, handler Handler, opts *Options) (*Subscriber, error) {
	var errs []error
	if client == nil {
		errs = append(errs, errors.New("client is nil"))
	}
	if topic == "" || name == "" {
		errs = append(errs, errors.New("topic and subscription need a name"))
	}
	s, err := newSubscriber(subscription{client, topic, name}, handler, opts)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("new subscriber: %w", err)
	}
	return s, nil
}

func newSubscriber(src source, handler Handler, opts *Options) (*Subscriber, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	var errs []error
	if handler == nil {
		errs = append(errs, errors.New("handler is nil"))
	}
	o.Sessions = cmp.Or(o.Sessions, 8)
	o.Receive = cmp.Or(o.Receive, 1)
	o.SessionIdle = cmp.Or(o.SessionIdle, time.Second)
	o.SessionMax = cmp.Or(o.SessionMax, time.Minute)
	o.GapDeliveries = cmp.Or(o.GapDeliveries, 3)
	o.RetryDelay = cmp.Or(o.RetryDelay, time.Second)
	o.RetryDelayMax = cmp.Or(o.RetryDelayMax, 30*time.Second)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 20*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Inbox == nil {
		o.Inbox = NewMemoryInbox(0)
	}
	if o.Observe == nil {
		o.Observe = func(context.Context, Outcome) {}
	}
	if o.Sessions < 0 || o.Receive < 0 {
		errs = append(errs, errors.New("options Sessions and Receive must be positive"))
	}
	if o.SessionIdle < 0 || o.RetryDelay < 0 || o.RetryDelayMax < o.RetryDelay || o.DrainTimeout < 0 {
		errs = append(errs, errors.New("times must be positive, RetryDelayMax not below RetryDelay"))
	}
	return &Subscriber{source: src, handler: handler, opts: o}, errors.Join(errs...)
}

// Run receives until ctx ends, drains and returns nil. It survives failures of the
// broker and of the handler. Run may be called again after it returned.
func (s *Subscriber) Run(ctx context.Context) error {
	handling, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var workers sync.WaitGroup
	for range s.opts.Sessions {
		workers.Go(func() { s.work(ctx, handling) })
	}
	done := make(chan struct{})
	go func() {
		workers.Wait()
		close(done)
	}()
	<-ctx.Done()
	timer := time.NewTimer(s.opts.DrainTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel(ErrDrainTimeout)
		<-done
	case <-done:
	}
	return nil
}

// work accepts one session after the other until ctx ends. handling is the context of
// handlers and settlements, which outlives ctx by the drain.
func (s *Subscriber) work(ctx, handling context.Context) {
	failures := 0
	for ctx.Err() == nil {
		held, err := s.source.accept(ctx)
		switch {
		case err == nil:
			failures = 0
			s.hold(ctx, handling, held)
		case errors.Is(err, errNoSession):
			failures = 0
		case ctx.Err() == nil:
			failures++
			s.opts.Logger.WarnContext(ctx, "no session could be accepted", "error", err, "failures", failures)
			wait(ctx, jitter(s.backoff(failures)))
		}
	}
}

// backoff is the pause after the n-th failure in a row, from 1.
func (s *Subscriber) backoff(n int) time.Duration {
	d := s.opts.RetryDelay
	for ; n > 1 && d < s.opts.RetryDelayMax; n-- {
		d *= 2
	}
	return min(d, s.opts.RetryDelayMax)
}

// jitter spreads d over [0.8 d, 1.2 d).
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// wait returns after d or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
