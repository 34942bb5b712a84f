package handling_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// A receiver is called again at once after success and with a growing backoff after failures.
func TestReceiverIsRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dispatcher, err := handling.NewDispatcher(func(context.Context, *consumer.Event) error { return nil }, consumer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		unavailable := errors.New("broker unavailable")
		answers := []error{unavailable, unavailable, nil, unavailable, nil}
		var pauses []time.Duration // before each call
		last, released := time.Now(), false
		dispatcher.Run(ctx, []handling.Receiver{func(context.Context, context.Context) error {
			pauses = append(pauses, time.Since(last).Round(time.Second))
			last = time.Now()
			n := len(pauses) - 1
			if n == len(answers) {
				stop()
				return unavailable
			}
			return answers[n]
		}}, func(context.Context) { released = true })
		if !released || len(pauses) != 6 {
			t.Fatalf("released: %v; paused %v", released, pauses)
		}
		for i, want := range []time.Duration{0, time.Second, 2 * time.Second, 0, time.Second, 0} {
			if pauses[i] != want {
				t.Errorf("paused %v before call %d, want about %v", pauses[i], i, want)
			}
		}
	})
}
