package cosmosfeed_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"feedbox/changefeed"
)

// recorder counts deliveries.
type recorder struct {
	mu sync.Mutex
	n  int
}

func (r *recorder) Handle(_ context.Context, b *changefeed.Batch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n += len(b.Items)
	return nil
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

func (r *recorder) wait(t *testing.T, n int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for r.count() < n {
		if time.Now().After(deadline) {
			t.Fatalf("%d deliveries after a minute, want %d", r.count(), n)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// run starts a processor and returns a function that drains it.
func run(t *testing.T, p *changefeed.Processor) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
