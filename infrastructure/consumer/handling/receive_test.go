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

// TestAReceiverIsCalledAgain: at once after it returned, after a failure with a pause, which grows
// while it goes on failing.
func TestAReceiverIsCalledAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lanes, err := handling.NewLanes(func(context.Context, *consumer.Event) error { return nil }, consumer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		away := errors.New("the broker is away")
		answers := []error{away, away, nil, away, nil}
		var pauses []time.Duration // before each call
		last, left := time.Now(), false
		lanes.Run(ctx, []handling.Receiver{func(context.Context, context.Context) error {
			pauses = append(pauses, time.Since(last).Round(time.Second))
			last = time.Now()
			n := len(pauses) - 1
			if n == len(answers) {
				stop()
				return away
			}
			return answers[n]
		}}, func(context.Context) { left = true })
		if !left || len(pauses) != 6 {
			t.Fatalf("left: %v; paused %v", left, pauses)
		}
		for i, want := range []time.Duration{0, time.Second, 2 * time.Second, 0, time.Second, 0} {
			if pauses[i] != want {
				t.Errorf("paused %v before call %d, want about %v", pauses[i], i, want)
			}
		}
	})
}
