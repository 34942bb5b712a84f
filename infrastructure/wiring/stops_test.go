package wiring

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
)

const testDrain = 20 * time.Second

// watchSignals starts the goroutine of os/signal outside of the bubble, because fx uses it.
func watchSignals() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	signal.Stop(c)
}

// A service that exceeds its time does not use up that of later hooks: links are closed and
// telemetry is flushed within the stop timeout.
func TestSlowStopHookLeavesTimeForLaterHooks(t *testing.T) {
	watchSignals()
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		var ran []string
		slow := func(name string) fx.Hook { // blocks until its deadline
			return fx.Hook{OnStop: func(ctx context.Context) error {
				if ctx.Err() == nil {
					ran = append(ran, name)
				}
				<-ctx.Done()
				return ctx.Err()
			}}
		}
		app := fx.New(process(slog.New(slog.DiscardHandler), testDrain), fx.Invoke(func(lc fx.Lifecycle, down fx.Shutdowner, log *slog.Logger) {
			for _, name := range []string{"telemetry", "client", "publisher"} {
				lc.Append(slow(name))
			}
			background(lc, down, log, "processor", func(context.Context) error { <-over; return nil }) // ignores its stop
		}))
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Time{}
		err := Run(ctx, app, func() { cancel(); began = time.Now() })
		took := time.Since(began)
		close(over)
		synctest.Wait()
		if want := []string{"publisher", "client", "telemetry"}; !slices.Equal(ran, want) {
			t.Errorf("hooks %v ran, want %v", ran, want)
		}
		if err == nil || !strings.Contains(err.Error(), "processor did not stop in time") {
			t.Errorf("error %v", err)
		}
		if took < testDrain || took > testDrain+StopMargin {
			t.Errorf("the stop took %v, the drain is %v and the margin %v", took, testDrain, StopMargin)
		}
	})
}

// A process that is interrupted during its start stops the started services: the processor
// releases its leases.
func TestInterruptedStartReleasesLeases(t *testing.T) {
	watchSignals()
	for name, interrupt := range map[string]func(ctx context.Context, cancel func()) error{
		"by a signal, while a hook waits": func(ctx context.Context, cancel func()) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		},
		"by a signal, as the last hook ends": func(_ context.Context, cancel func()) error { cancel(); return nil },
		"by its timeout":                     func(ctx context.Context, _ func()) error { <-ctx.Done(); return ctx.Err() },
		"by a failure":                       func(context.Context, func()) error { return errors.New("no such container") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var acquired, released int
				observer := &changefeed.Observer{
					LeaseAcquired: func(changefeed.LeaseAcquired) { acquired++ },
					LeaseReleased: func(changefeed.LeaseReleased) { released++ },
				}
				handle := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return nil })
				p, err := changefeed.New(memfeed.New(nil), memstore.New(nil), handle, &changefeed.Options{Host: "a", Observer: observer})
				if err != nil {
					t.Fatal(err)
				}
				app := fx.New(process(slog.New(slog.DiscardHandler), testDrain), fx.Invoke(func(lc fx.Lifecycle, down fx.Shutdowner, log *slog.Logger) {
					background(lc, down, log, "processor", p.Run)
					lc.Append(fx.StartHook(func(ctx context.Context) error {
						time.Sleep(5 * time.Second) // it has its leases then
						return interrupt(ctx, cancel)
					}))
				}))
				err = Run(ctx, app, nil)
				synctest.Wait()
				if acquired == 0 || released != acquired {
					t.Errorf("%d leases acquired, %d released", acquired, released)
				}
				if asked := strings.HasPrefix(name, "by a signal"); (err == nil) != asked {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}
