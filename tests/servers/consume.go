package servers

import (
	"context"
	"sync"
	"testing"
	"time"

	"feedbox/infrastructure/consumer"
)

// Consumer is a consumer of one of the kits.
type Consumer interface {
	Run(ctx context.Context) error
}

// Consume runs a consumer until the test ends or stop is called, which waits for it to drain.
func Consume(t testing.TB, c Consumer, err error) (stop func()) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // canceled by the clean-up, which waits
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the consumer: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Options returns options of a consumer that writes into l.
func (l *Ledger) Options() consumer.Options {
	return consumer.Options{Inbox: l, Observe: l.Observe, RetryDelay: 50 * time.Millisecond}
}
