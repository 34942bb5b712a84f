package wiring

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// hurry is what a stop still gets after a second signal: enough to release leases if
// the database answers.
const hurry = 2 * time.Second

// UntilSignal returns a context that ends with the first SIGTERM or interrupt, which
// begins the graceful stop. A second one says that whoever sent it will not wait:
// abandon is called 2 s after it, if stop has not been called by then. stop ends the
// watch and waits for it.
func UntilSignal(parent context.Context, abandon func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2) // both are kept, however close they come
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
