package subscriber

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/consumer"
)

// requestTimeout bounds a settlement, a request and the detaching of a link.
const requestTimeout = 10 * time.Second

// settle settles a delivery by the error in out, and sets the action of out. It reports whether the broker
// confirmed the settlement before ctx ended.
func settle(ctx context.Context, r *amqp.Receiver, m *amqp.Message, out *consumer.Outcome) bool {
	var err error
	reason, dead := errors.AsType[*consumer.DeadLetterError](out.Err)
	switch {
	case out.Err == nil, out.Action == consumer.Parked, out.Action == consumer.Dropped:
		err = r.AcceptMessage(ctx, m)
	case dead:
		out.Action = consumer.DeadLettered
		err = r.RejectMessage(ctx, m, &amqp.Error{Condition: "com.microsoft:dead-letter", Info: map[string]any{
			propertyReason: reason.Code(), propertyDescription: reason.Description(),
		}})
	case errors.Is(out.Err, consumer.Defer()):
		out.Action = consumer.Deferred
		err = r.ModifyMessage(ctx, m, &amqp.ModifyMessageOptions{UndeliverableHere: true})
	default:
		out.Action = consumer.Abandoned
		err = r.ModifyMessage(ctx, m, nil)
	}
	if err != nil {
		out.Action, out.Err = consumer.Unsettled, errors.Join(out.Err, err)
	}
	return err == nil
}

// bounded returns a context for a settlement, which ends requestTimeout from now even if ctx has ended.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
}

// settlers is a pool of goroutines that wait for the confirmation of settlements. They are reused, because
// a new goroutine would grow its stack each time.
type settlers struct {
	tasks chan func(ctx context.Context) // unbuffered: received by an idle goroutine
	done  chan struct{}                  // closed by end
	all   sync.WaitGroup
}

func newSettlers() *settlers {
	return &settlers{tasks: make(chan func(context.Context)), done: make(chan struct{})}
}

// run calls task in a goroutine of the pool, with a context that lasts at least requestTimeout.
func (s *settlers) run(ctx context.Context, task func(ctx context.Context)) {
	select {
	case s.tasks <- task:
	default:
		s.all.Go(func() { s.settle(context.WithoutCancel(ctx), task) })
	}
}

func (s *settlers) settle(ctx context.Context, task func(ctx context.Context)) {
	for task != nil {
		task = s.runShared(ctx, task)
	}
}

// runShared runs tasks with one context for a second, so that not every task needs a context of its own. It
// returns the next task, or nil after end.
func (s *settlers) runShared(ctx context.Context, task func(ctx context.Context)) (next func(ctx context.Context)) {
	const shared = time.Second
	ctx, cancel := context.WithTimeout(ctx, requestTimeout+shared)
	defer cancel()
	for until := time.Now().Add(shared); ; {
		task(ctx)
		select {
		case task = <-s.tasks:
			if time.Now().After(until) {
				return task
			}
		case <-s.done:
			return nil
		}
	}
}

// end ends the pool and waits for its goroutines. There must be no further tasks.
func (s *settlers) end() {
	close(s.done)
	s.all.Wait()
}
