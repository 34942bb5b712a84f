package subscriber

import (
	"context"
	"sync"
	"time"
)

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
