package changefeed

import (
	"context"
	"errors"
	"sync"
)

// ownCalls counts the running calls of Processor.Own in a session of a worker. The zero
// value refuses calls.
type ownCalls struct {
	mu        sync.Mutex
	accepting bool           // guarded by mu
	running   sync.WaitGroup // added to under mu while accepting
}

// accept sets whether new calls are accepted.
func (g *ownCalls) accept(on bool) {
	g.mu.Lock()
	g.accepting = on
	g.mu.Unlock()
}

func (g *ownCalls) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.accepting {
		g.running.Add(1)
	}
	return g.accepting
}

// callOwned calls do under the worker's ownership.
func (w *worker) callOwned(ctx context.Context, do func(ctx context.Context) error) error {
	if !w.calls.begin() {
		return ErrNotOwned
	}
	defer w.calls.running.Done()
	if err := w.ensureTrusted(); err != nil {
		return errors.Join(ErrNotOwned, err)
	}
	caller := ctx
	ctx, end := context.WithCancelCause(caller)
	defer end(nil)
	defer context.AfterFunc(w.ctx, func() { end(context.Cause(w.ctx)) })()
	err := do(&fencedContext{Context: ctx, fence: w.keeper.fence, end: end})
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return nil
	case cause != nil && caller.Err() == nil:
		return errors.Join(ErrNotOwned, cause, err)
	}
	return errors.Join(cause, err)
}
