package wiring

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// hurry is the rest of a stop after a second signal: enough to release leases if the
// database answers.
const hurry = 2 * time.Second

// UntilSignal returns a context that ends with the first SIGTERM or interrupt, which starts
// the graceful stop. A second signal means that the sender does not want to wait: 2 s after
// it abandon is called, unless stop was called before. stop ends the handling of signals
// and waits for it.
func UntilSignal(parent context.Context, abandon func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2) // both signals fit, so neither is lost
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for _, next := range []func(){cancel, func() {
			timer := time.NewTimer(hurry)
			defer timer.Stop()
			select {
			case <-timer.C:
				abandon()
			case <-over:
			}
		}} {
			select {
			case <-signals:
				next()
			case <-over:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(over)
		<-watched
		cancel()
	}
}
