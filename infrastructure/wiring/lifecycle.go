package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.uber.org/dig"
	"go.uber.org/fx"
)

// service is what fx starts and stops: Run blocks until its context ends and
// returns nil then.
type service interface {
	Run(ctx context.Context) error
}

// serviceFunc is a service that is one function.
type serviceFunc func(ctx context.Context) error

// Run implements service.
func (f serviceFunc) Run(ctx context.Context) error { return f(ctx) }

// background runs s from fx's start to fx's stop. The context given to Run is
// its own, never the start hook's, which ends with the start time-out. Stop
// cancels it and waits; a service that ends by itself stops the whole app with
// exit code 1.
func background(lc fx.Lifecycle, down fx.Shutdowner, log *slog.Logger, name string, s service) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // the root of the service's own life, ended by the stop hook
	done := make(chan error, 1)
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			go func() {
				err := s.Run(ctx)
				if err != nil || ctx.Err() == nil {
					log.Error("service ended", "service", name, "error", err)
					_ = down.Shutdown(fx.ExitCode(exitEnded)) // fails only if the app is stopping already
				}
				done <- err
			}()
			return nil
		},
		OnStop: func(stop context.Context) error {
			cancel()
			select {
			case err := <-done:
				return err
			case <-stop.Done():
				return fmt.Errorf("%s did not stop in time: %w", name, context.Cause(stop))
			}
		},
	})
}

// exitEnded tells a shutdown that a service caused from one by a signal.
const exitEnded = 1

// ErrEnded says that a service ended although nobody asked it to.
var ErrEnded = errors.New("stopped by itself, the log says why")

// Run starts app, calls started, waits until ctx ends or the app stops itself,
// and stops it within its stop time-out. If ctx ends before app has started, what had
// started is stopped the same way. It returns nil after a clean stop that ctx asked
// for. started may be nil.
func Run(ctx context.Context, app *fx.App, started func()) error {
	if err := app.Err(); err != nil {
		return dig.RootCause(err) // without fx's account of constructors
	}
	if err := startApp(ctx, app); err != nil {
		if err == errInterrupted { //nolint:errorlint // joined to another error it is a failed stop
			return nil
		}
		return fmt.Errorf("start: %w", err)
	}
	if started != nil {
		started()
	}
	var ended error
	select {
	case <-ctx.Done():
	case shutdown := <-app.Wait(): // fx listens to the signals that end ctx, too
		if shutdown.ExitCode == exitEnded {
			ended = ErrEnded
		}
	}
	stop, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), app.StopTimeout())
	defer cancelStop()
	if err := app.Stop(stop); err != nil {
		return errors.Join(ended, fmt.Errorf("stop: %w", err))
	}
	return ended
}
