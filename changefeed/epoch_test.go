package changefeed_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

// The epoch of a lease rises with every change of its owner, a take-over included: a
// handler tells by it that another host has been at work in between.
func TestEpochRisesWhenALeaseIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var mu sync.Mutex
		var epochs []int64 // as handlers saw them, one for each change of it
		handler := changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			if n := len(epochs); n == 0 || epochs[n-1] != b.Epoch {
				epochs = append(epochs, b.Epoch)
			}
			return nil
		})
		for round, name := range []string{"a", "b", "c"} {
			h := w.start(name, handler, nil)
			w.put(10, 5)
			eventually(t, time.Minute, "handled by "+name, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(epochs) == round+1 || len(epochs) > 0 && w.owners()[name] == 1
			})
			time.Sleep(time.Minute) // all is handled and checkpointed
			h.crash()
		}
		mu.Lock()
		defer mu.Unlock()
		if len(epochs) != 3 || epochs[0] >= epochs[1] || epochs[1] >= epochs[2] {
			t.Errorf("three owners, one after the other, handled under the epochs %v; want three that rise", epochs)
		}
	})
}
