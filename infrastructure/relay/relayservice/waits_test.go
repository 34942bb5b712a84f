package relayservice_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// A feed that waits for changes itself is read again at once, whatever PollMin is.
func TestWaitingFeedIsReadWithoutPause(t *testing.T) {
	for waits, want := range map[bool]string{true: "e1 e2", false: "e1"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.store.Waits, b.o.PollMin = waits, 5*time.Second
			b.put("k", "e1", 1)
			stop := b.run()
			time.Sleep(time.Second)
			b.put("k", "e2", 2)
			time.Sleep(100 * time.Millisecond)
			if got := b.sent(); got != want {
				t.Errorf("a feed that waits (%t): %q, want %q", waits, got, want)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
