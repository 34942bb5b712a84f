package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.uber.org/dig"
	"go.uber.org/fx"

	"feedbox/infrastructure/process/azure"
)

// background runs a service from fx's start to fx's stop. A service blocks until its context
// ends, and then returns nil. It gets its own context, because the context of the start hook
// ends with the start timeout. The stop hook cancels it and waits. A service that ends
// before the stop stops the whole app with exit code 1.
func background(lc fx.Lifecycle, down fx.Shutdowner, log *slog.Logger, name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // canceled by the stop hook
	done := make(chan error, 1)
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			go func() {
				err := run(ctx)
				if err != nil || ctx.Err() == nil {
					log.Error("service ended unexpectedly", "service", name, "error", brief(err))
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

// brief shortens an error to one line. It returns nil for a service that ended without an error.
func brief(err error) any {
	if err == nil {
		return nil
	}
	return azure.Brief(err)
}

// exitEnded marks a shutdown caused by a service, not by a signal.
const exitEnded = 1

// ErrEnded means that a service ended although no stop was requested.
var ErrEnded = errors.New("a service ended unexpectedly, see the log")

// Run starts app, calls started, waits until ctx ends or a service ends, and stops app
// within its stop timeout. If ctx ends during the start, the hooks that have started are
// stopped the same way. Run returns nil after a clean stop that ctx requested. started may
// be nil.
func Run(ctx context.Context, app *fx.App, started func()) error {
	if err := app.Err(); err != nil {
		return dig.RootCause(err) // without fx's list of constructors
	}
	if err := startApp(ctx, app); err != nil {
		if err == errInterrupted { //nolint:errorlint // if joined with another error, the stop failed
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
	case shutdown := <-app.Wait(): // also after a signal, because fx handles signals too
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
