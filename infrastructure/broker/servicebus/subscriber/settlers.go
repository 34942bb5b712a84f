package subscriber

import (
	"context"
	"sync"
	"time"
)

// settlers are goroutines that wait for the broker to confirm settlements, as many as there
// are at a time. They stay for the next ones: a new goroutine would grow its stack each time.
type settlers struct {
	tasks chan func(ctx context.Context) // unbuffered: taken by one that is free
	over  chan struct{}                  // closed when there will be no more
	all   sync.WaitGroup
}

func newSettlers() *settlers {
	return &settlers{tasks: make(chan func(context.Context)), over: make(chan struct{})}
}

// run lets a settler carry out a task with a context that holds for requestTimeout.
func (s *settlers) run(ctx context.Context, task func(ctx context.Context)) {
	select {
	case s.tasks <- task:
	default:
		s.all.Go(func() { s.settle(context.WithoutCancel(ctx), task) })
	}
}

func (s *settlers) settle(ctx context.Context, task func(ctx context.Context)) {
	for task != nil {
		task = s.share(ctx, task)
	}
}

// share carries out tasks with one context for a second, and returns the next one; nil if
// there is none.
func (s *settlers) share(ctx context.Context, task func(ctx context.Context)) (next func(ctx context.Context)) {
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
		case <-s.over:
			return nil
		}
	}
}

// end waits for the settlers, who have no more to do.
func (s *settlers) end() {
	close(s.over)
	s.all.Wait()
}
