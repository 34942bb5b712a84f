package wiring

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/fx"
)

// ownStop is what each stop hook has for itself: those before it never use it up. Hooks
// that end what runs get the drain besides, and what the hooks before them left over.
const ownStop = 500 * time.Millisecond

// stops is a lifecycle whose stop hooks share the stop time-out T so that all run. fx
// gives the whole of it to whichever comes first and skips the rest when it is over.
//
//	stop begins                                                        T
//	|-- the service, at most --------------------------------|           |
//	                                 ... links, telemetry, at most ----|
//
// Hooks stop in reverse: the deadline of one leaves ownStop to each that was appended
// before it.
//
// Its start hooks are run with the context that Run put into fx's, which a signal ends;
// fx's own goes on, because fx rolls a start back with the context of the start.
type stops struct {
	fx.Lifecycle
	total time.Duration

	mu     sync.Mutex // guards what follows
	behind time.Duration
	end    time.Time // of the whole stop; zero before it begins
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
				err = start(own) //nolint:contextcheck // it is ctx, with its own end
			}
			if err != nil && errors.Is(context.Cause(own), context.Canceled) {
				return errInterrupted
			}
			return err
		}
	}
	if stop := h.OnStop; stop != nil {
		s.mu.Lock()
		s.behind += ownStop // also for the last: fx, to say what failed
		reserve := s.behind
		s.mu.Unlock()
		h.OnStop = func(ctx context.Context) error {
			ctx, cancel := context.WithDeadline(ctx, s.endOf(ctx).Add(-reserve))
			defer cancel()
			return stop(ctx)
		}
	}
	s.Lifecycle.Append(h)
}

// endOf is when the whole stop ends. The first stop hook begins it.
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

// startKey is where Run puts the context of start hooks.
type startKey struct{}

// errInterrupted ends a start that is no longer wanted.
var errInterrupted = errors.New("told to end while starting")

// startApp starts app until ctx ends or the start time-out is over. What had started is
// then stopped, with the whole stop time-out.
func startApp(ctx context.Context, app *fx.App) error {
	own, cancel := context.WithTimeout(ctx, app.StartTimeout())
	defer cancel()
	return app.Start(context.WithValue(context.WithoutCancel(ctx), startKey{}, own))
}
