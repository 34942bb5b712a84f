package wiring

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/fx"
)

// ownStop is the time reserved for each stop hook, which earlier hooks cannot use up. A hook
// also gets the time that the hooks before it have left of the drain.
const ownStop = 500 * time.Millisecond

// stops is a lifecycle whose stop hooks share the stop timeout T, so that all of them run.
// fx itself gives the whole timeout to the first hook and skips the rest once it is over.
//
//	stop starts                                                        T
//	|-- the service, at most --------------------------------|           |
//	                                 ... links, telemetry, at most ----|
//
// Hooks stop in reverse order: the deadline of a hook leaves ownStop to each hook that was
// appended before it.
//
// Start hooks get the context that Run stored in fx's context, and a signal ends it. The
// context of fx must not end, because fx rolls back a start with the context of the start.
type stops struct {
	fx.Lifecycle
	total time.Duration

	mu       sync.Mutex // guards the fields below
	reserved time.Duration
	end      time.Time // of the whole stop; zero before it starts
}

// Append implements fx.Lifecycle.
func (s *stops) Append(h fx.Hook) {
	if start := h.OnStart; start != nil {
		h.OnStart = func(ctx context.Context) error {
			own, ok := ctx.Value(startKey{}).(context.Context)
			if !ok {
				return start(ctx)
			}
			err := errInterrupted
			if own.Err() == nil {
				err = start(own) //nolint:contextcheck // ctx with another end
			}
			if err != nil && errors.Is(context.Cause(own), context.Canceled) {
				return errInterrupted
			}
			return err
		}
	}
	if stop := h.OnStop; stop != nil {
		s.mu.Lock()
		s.reserved += ownStop // also after the last hook, for fx to report failures
		reserve := s.reserved
		s.mu.Unlock()
		h.OnStop = func(ctx context.Context) error {
			ctx, cancel := context.WithDeadline(ctx, s.endOf(ctx).Add(-reserve))
			defer cancel()
			return stop(ctx)
		}
	}
	s.Lifecycle.Append(h)
}

// endOf returns the end of the whole stop. The first stop hook starts it.
func (s *stops) endOf(ctx context.Context) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.IsZero() {
		s.end = time.Now().Add(s.total)
		if deadline, ok := ctx.Deadline(); ok {
			s.end = deadline
		}
	}
	return s.end
}

// startKey is the key of the context of start hooks.
type startKey struct{}

// errInterrupted ends a start after a signal.
var errInterrupted = errors.New("interrupted while starting")

// startApp starts app. If ctx ends or the start timeout is over, the hooks that have started
// are stopped, with the whole stop timeout.
func startApp(ctx context.Context, app *fx.App) error {
	own, cancel := context.WithTimeout(ctx, app.StartTimeout())
	defer cancel()
	return app.Start(context.WithValue(context.WithoutCancel(ctx), startKey{}, own))
}
