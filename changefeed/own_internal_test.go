package changefeed

import (
	"testing"
	"testing/synctest"
)

func TestRefusedOwnCallIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls ownCalls
		if calls.begin() {
			t.Error("let in before a session begins")
		}
		waits := true
		go func() { calls.running.Wait(); waits = false }()
		if synctest.Wait(); waits {
			t.Error("a refused call is waited for")
			calls.running.Done()
		}
	})
}
